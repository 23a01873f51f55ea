// SPDX-License-Identifier: Apache-2.0
#include "post/policy_change.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "advise/diff.h"
#include "codec/text/neutral.h"
#include "policy/load/parse.h"

namespace post {
namespace {

constexpr char kPolicyFile[] = ".agentic-ci/openshell-policy.yml";
constexpr char kConfigFile[] = ".agentic-ci/config.yml";
constexpr char kDirectory[] = ".agentic-ci/";
constexpr size_t kShownBytesMax = 6000;  // The bound on one file.
// The bounds on the whole note, besides what the policy opens and closes: the verdict stands below
// it.
constexpr size_t kDetailsBytesMax = 10'000;
constexpr size_t kNamesMax = 20;

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

bool Concerns(const forge::DiffFile& file, std::string_view path) {
  return file.path == path || file.old_path == path;
}

// Returns the files of the rules that the difference has. Those that are always read come first,
// so that no number of others hides them.
std::vector<const forge::DiffFile*> RuleFiles(const std::vector<forge::DiffFile>& diff) {
  std::vector<const forge::DiffFile*> files;
  for (const forge::DiffFile& file : diff) {
    if (file.path.starts_with(kDirectory) || file.old_path.starts_with(kDirectory)) {
      files.push_back(&file);
    }
  }
  std::stable_partition(files.begin(), files.end(), [](const forge::DiffFile* file) {
    return Concerns(*file, kPolicyFile) || Concerns(*file, kConfigFile);
  });
  return files;
}

std::string LinesAdded(const forge::DiffFile& file) {
  std::string added;
  for (const forge::DiffLine& line : file.lines) {
    if (line.old_number == 0) added += "+" + line.text + "\n";
  }
  if (added.empty()) return added;
  return Folded("Lines added to " + codec::MarkdownCode(file.path, 200), added, "diff");
}

// Returns the warning that the forge has cut its list of files; empty if it has not.
std::string DescribeUnlisted(size_t files, size_t listed) {
  if (files <= listed) return "";
  return "> The forge lists only " + std::to_string(listed) + " of the " + std::to_string(files) +
         " changed files. The others may change agentic-ci's own rules (`" +
         std::string(kDirectory) + "`), so look there before merging.\n";
}

}  // namespace

Result<std::string> DescribePolicyChange(forge::Forge& forge, const forge::Proposal& proposal,
                                         const std::function<Result<std::string>()>& base_commit,
                                         const std::vector<forge::DiffFile>& diff,
                                         Deadline deadline) {
  const std::vector<const forge::DiffFile*> files = RuleFiles(diff);
  const std::string unlisted = DescribeUnlisted(proposal.files, diff.size());
  if (files.empty() && unlisted.empty()) return std::string();
  std::string names;
  std::string policy;
  std::string details;
  size_t hidden = 0;
  for (size_t at = 0; at < files.size(); ++at) {
    const forge::DiffFile& file = *files[at];
    if (at < kNamesMax) names += (at == 0 ? "" : ", ") + codec::MarkdownCode(file.path, 200);
    if (Concerns(file, kPolicyFile)) {
      const std::string commit = TRY(base_commit());
      std::optional<std::string> base = TRY(forge.ReadFile(kPolicyFile, commit, deadline));
      std::optional<std::string> head =
          TRY(forge.ReadFile(kPolicyFile, proposal.head_sha, deadline));
      policy = Folded("What the policy of this pull request would open and close",
                      Compare(base, head), "text");
      continue;
    }
    const std::string added = LinesAdded(file);
    const bool fits = details.size() + added.size() <= kDetailsBytesMax;
    if (fits) details += added;
    hidden += fits && !file.lines.empty() ? 0 : 1;
  }
  if (files.size() > kNamesMax) {
    names += " and " + std::to_string(files.size() - kNamesMax) + " more";
  }
  if (hidden > 0) {
    details +=
        "The lines of " + std::to_string(hidden) + " more of these files are not shown here.\n\n";
  }
  std::string note = "> [!WARNING]\n";
  if (!names.empty()) {
    note += "> This " + std::string(forge.capabilities().proposal) +
            " changes agentic-ci's own rules: " + names +
            ". The run used those of the base branch; the change has an effect once it is "
            "merged.\n";
  }
  return note + unlisted + "\n" + policy + details;
}

}  // namespace post
