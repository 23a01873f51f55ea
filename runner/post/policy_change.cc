// SPDX-License-Identifier: Apache-2.0
#include "post/policy_change.h"

#include <optional>
#include <utility>

#include "advise/diff.h"
#include "codec/text/neutral.h"
#include "policy/load/parse.h"

namespace post {
namespace {

constexpr char kPolicyFile[] = ".agentic-ci/openshell-policy.yml";
constexpr char kDirectory[] = ".agentic-ci/";
constexpr size_t kShownBytesMax = 6000;

std::string Folded(const std::string& summary, const std::string& text, const char* language) {
  return "<details><summary>" + summary + "</summary>\n\n" +
         codec::MarkdownFence(text, language, kShownBytesMax) + "\n</details>\n\n";
}

Result<policy::Policy> ParseSide(const std::optional<std::string>& text, const char* side) {
  if (!text) return policy::Policy();
  policy::ParseContext context;
  context.file = side;
  policy::ParsedPolicy parsed = TRY(policy::ParsePolicy(*text, context));
  return std::move(parsed.policy);
}

// The two sides of the policy compared, or why they cannot be.
std::string Compare(const std::optional<std::string>& base,
                    const std::optional<std::string>& head) {
  if (!base) return "There is no policy on the base branch, so the built-in default applies.\n";
  if (!head) return "The policy is removed: the built-in default would apply.\n";
  Result<policy::Policy> now = ParseSide(base, "base");
  Result<policy::Policy> next = ParseSide(head, "pull request");
  if (!now.ok()) return codec::EscapedLine(now.error().what) + "\n";
  if (!next.ok()) return "invalid: " + codec::EscapedLine(next.error().what) + "\n";
  return advise::RenderDifference(advise::ComparePolicies(now.value(), next.value(), {}), "base",
                                  "pull request");
}

}  // namespace

Result<std::string> DescribePolicyChange(forge::Forge& forge, const forge::Proposal& proposal,
                                         const std::vector<forge::DiffFile>& diff,
                                         Deadline deadline) {
  std::string names;
  std::string details;
  for (const forge::DiffFile& file : diff) {
    bool ours = file.path.starts_with(kDirectory) || file.old_path.starts_with(kDirectory);
    if (!ours) continue;
    names += (names.empty() ? "" : ", ") + codec::MarkdownCode(file.path, 200);
    if (file.path == kPolicyFile || file.old_path == kPolicyFile) {
      std::optional<std::string> base =
          TRY(forge.ReadFile(kPolicyFile, proposal.base_ref, deadline));
      std::optional<std::string> head =
          TRY(forge.ReadFile(kPolicyFile, proposal.head_sha, deadline));
      details += Folded("What the policy of this pull request would open and close",
                        Compare(base, head), "text");
      continue;
    }
    std::string added;
    for (const forge::DiffLine& line : file.lines) {
      if (line.old_number == 0) added += "+" + line.text + "\n";
    }
    if (added.empty()) continue;
    details += Folded("Lines added to " + codec::MarkdownCode(file.path, 200), added, "diff");
  }
  if (names.empty()) return std::string();
  return "> [!WARNING]\n> This " + std::string(forge.capabilities().proposal) +
         " changes agentic-ci's own rules: " + names +
         ". The run used those of the base branch; the change has an effect once it is "
         "merged.\n\n" +
         details;
}

}  // namespace post
