// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/untrusted_texts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/sys.h"
#include "forge/open/open.h"

namespace run {

std::vector<policy::UntrustedText> TextsOfEvent(const forge::EventText& text, bool proposal) {
  const std::string of = proposal ? " of the pull request" : " of the issue";
  std::vector<policy::UntrustedText> texts;
  const auto add = [&](std::string name, const std::string& value) {
    if (!value.empty()) texts.push_back({std::move(name), value});
  };
  add("the title" + of, text.title);
  add("the text" + of, text.body);
  add("a comment" + of, text.comment);
  return texts;
}

std::vector<policy::UntrustedText> AddedTexts(std::string_view patch) {
  constexpr std::string_view kNewFile = "+++ b/";
  std::vector<policy::UntrustedText> texts;
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(std::min(end + 1, patch.size()));
    if (line.starts_with(kNewFile)) {
      texts.push_back({std::string(line.substr(kNewFile.size())) + " of the pull request", {}});
    } else if (line.starts_with('+') && !texts.empty()) {
      texts.back().text.append(line.substr(1)).push_back('\n');
    }
  }
  return texts;
}

Result<policy::UntrustedTexts> FindUntrustedTexts(const forge::Event& event,
                                                  const change::Repository* repository,
                                                  const TrustedRef& ref) {
  policy::UntrustedTexts found;
  if (event.forge == forge::ForgeKind::kNone) return found;
  const bool proposal = event.proposal_number > 0;
  const forge::EventText text = TRY(forge::ReadEventText(sys::Environment, event));
  found.texts = TextsOfEvent(text, proposal);
  size_t bytes = 0;
  for (const policy::UntrustedText& one : found.texts) bytes += one.text.size();
  found.complete = bytes <= policy::kUntrustedBytesMax;
  if (!proposal || repository == nullptr || repository->unborn()) return found;
  Result<change::Proposal> change = repository->ReadProposal(ref.ref, policy::kUntrustedBytesMax);
  if (!change.ok() || change.value().patch.size() < change.value().patch_bytes) {
    found.complete = false;
    return found;
  }
  for (policy::UntrustedText& added : AddedTexts(change.value().patch)) {
    found.texts.push_back(std::move(added));
  }
  return found;
}

}  // namespace run
