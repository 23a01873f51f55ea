// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/untrusted_texts.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include "base/sys.h"
#include "forge/open/open.h"

namespace run {
namespace {

// The lines of a hunk that are still to come: "@@ -1,2 +1,3 @@".
struct HunkLines {
  size_t before = 0;
  size_t after = 0;

  bool any() const { return before + after > 0; }
};

// Reads the count behind `mark` in a hunk's head: 1 where it has none.
size_t CountBehind(std::string_view head, char mark) {
  size_t at = head.find(mark);
  if (at == std::string_view::npos) return 0;
  at = head.find_first_not_of("0123456789", at + 1);
  if (at == std::string_view::npos || head[at] != ',') return 1;
  size_t count = 0;
  std::from_chars(head.data() + at + 1, head.data() + head.size(), count);
  return count;
}

// The name of the file that "+++ b/NAME" or "+++ "b/NA\"ME"" begins.
std::string_view NameOf(std::string_view header) {
  if (header.starts_with('"')) header.remove_prefix(1);
  if (header.starts_with("b/")) header.remove_prefix(2);
  if (header.ends_with('"')) header.remove_suffix(1);
  return header;
}

}  // namespace

std::vector<policy::UntrustedText> TextsOfEvent(const forge::EventText& text, bool proposal) {
  const std::string of = proposal ? " of the pull request" : " of the issue";
  std::vector<policy::UntrustedText> texts;
  const auto add = [&](std::string name, const std::string& value) {
    if (!value.empty()) texts.push_back({std::move(name), value});
  };
  add("the title" + of, text.title);
  add("the text" + of, text.body);
  add("a comment" + of, text.comment);
  for (const auto& [path, value] : text.others) add("'" + path + "' of the event", value);
  return texts;
}

policy::UntrustedTexts AddedTexts(std::string_view patch) {
  constexpr std::string_view kNewFile = "+++ ";
  policy::UntrustedTexts found;
  std::vector<policy::UntrustedText>& texts = found.texts;
  HunkLines left;  // Inside a hunk no line is a head, whatever it begins with.
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(std::min(end + 1, patch.size()));
    if (!left.any()) {
      if (line.starts_with('(')) found.complete = false;  // Why a file is not shown.
      if (line.starts_with("@@ ")) left = {CountBehind(line, '-'), CountBehind(line, '+')};
      if (line.starts_with(kNewFile)) {
        const std::string_view name = NameOf(line.substr(kNewFile.size()));
        texts.push_back({std::string(name) + " of the pull request", {}});
      }
      continue;
    }
    const char kind = line.empty() ? ' ' : line.front();
    if (kind == '\\') continue;  // "No newline at end of file"
    if (kind != '+' && left.before > 0) --left.before;
    if (kind != '-' && left.after > 0) --left.after;
    if (kind == '+' && !texts.empty()) texts.back().text.append(line.substr(1)).push_back('\n');
  }
  return found;
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
  policy::UntrustedTexts added = AddedTexts(change.value().patch);
  found.complete = found.complete && added.complete;
  std::ranges::move(added.texts, std::back_inserter(found.texts));
  return found;
}

}  // namespace run
