// SPDX-License-Identifier: Apache-2.0
#include "report/patch_file.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace report {
namespace {

using RowKind = PatchRow::Kind;

constexpr std::string_view kGit = "diff --git ";

// "@@ -12,3 +14,4 @@": where the hunk begins on one side.
int64_t NumberAfter(char sign, std::string_view line) {
  int64_t number = 0;
  if (const size_t at = line.find(sign); at != std::string_view::npos) {
    std::from_chars(line.data() + at + 1, line.data() + line.size(), number);
  }
  return std::clamp<int64_t>(number, 0, int64_t{1} << 40);
}

// Headers that repeat the file's name.
bool SaysNothing(std::string_view line) {
  constexpr std::array<std::string_view, 3> kKnown = {"index ", "--- ", "+++ "};
  return std::any_of(kKnown.begin(), kKnown.end(),
                     [line](std::string_view with) { return line.starts_with(with); });
}

class Splitter {
 public:
  void TakeLine(std::string_view line) {
    // Inside a hunk every line begins with ' ', '+', '-' or '\', inside a binary part none has
    // spaces.
    if (line.starts_with(kGit) || files_.empty()) {
      files_.emplace_back();
      files_.back().header = line.starts_with(kGit) ? line.substr(kGit.size()) : line;
      if (line.starts_with(kGit)) return;
    }
    PatchFile& file = files_.back();
    if (line.starts_with("@@")) return BeginHunk(line);
    if (!file.hunks.empty()) return Add(RowOf(line));
    if (line == "GIT binary patch" || line.starts_with("Binary files ")) file.binary = true;
    if (!file.binary && !SaysNothing(line) && !line.empty()) file.facts.push_back(line);
  }
  std::vector<PatchFile> Take() { return std::move(files_); }

 private:
  void BeginHunk(std::string_view line) {
    old_line_ = NumberAfter('-', line);
    new_line_ = NumberAfter('+', line);
    files_.back().hunks.emplace_back();
    Add({RowKind::kNote, 0, 0, line});
  }

  PatchRow RowOf(std::string_view line) {
    const char sign = line.empty() ? ' ' : line[0];
    const std::string_view text = line.substr(std::min<size_t>(1, line.size()));
    if (sign == '+') return {RowKind::kAdded, 0, new_line_++, text};
    if (sign == '-') return {RowKind::kRemoved, old_line_++, 0, text};
    if (sign == ' ') return {RowKind::kContext, old_line_++, new_line_++, text};
    return {RowKind::kNote, 0, 0, line};
  }

  void Add(PatchRow row) {
    files_.back().hunks.back().push_back(row);
    ++files_.back().rows;
  }

  std::vector<PatchFile> files_;
  int64_t old_line_ = 0;
  int64_t new_line_ = 0;
};

}  // namespace

std::vector<PatchFile> SplitPatch(std::string_view patch) {
  Splitter splitter;
  while (!patch.empty()) {
    const size_t end = patch.find('\n');
    splitter.TakeLine(patch.substr(0, end));
    patch.remove_prefix(end == std::string_view::npos ? patch.size() : end + 1);
  }
  return splitter.Take();
}

}  // namespace report
