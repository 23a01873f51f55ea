// SPDX-License-Identifier: Apache-2.0
#include "forge/diff_file.h"

#include <algorithm>
#include <charconv>

namespace forge {
namespace {

constexpr int kLineMax = 100'000'000;

// "@@ -OLD[,COUNT] +NEW[,COUNT] @@": false for anything else.
bool ReadHead(std::string_view line, int& old_line, int& new_line) {
  auto number = [&line](std::string_view before, int& into) {
    if (!line.starts_with(before)) return false;
    line.remove_prefix(before.size());
    auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), into);
    if (error != std::errc() || into < 0 || into > kLineMax) return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
    if (!line.starts_with(',')) return true;
    line.remove_prefix(1);
    size_t digits = line.find_first_not_of("0123456789");
    line.remove_prefix(std::min(digits, line.size()));
    return digits != 0;
  };
  return number("@@ -", old_line) && number(" +", new_line) && line.starts_with(" @@");
}

}  // namespace

const DiffLine* DiffFile::Find(int number) const {
  auto found = std::lower_bound(lines.begin(), lines.end(), number,
                                [](const DiffLine& line, int n) { return line.number < n; });
  return found != lines.end() && found->number == number ? &*found : nullptr;
}

std::vector<DiffLine> ParseHunks(std::string_view hunks) {
  std::vector<DiffLine> lines;
  int old_line = 0;
  int new_line = 0;
  int hunk = 0;
  while (!hunks.empty()) {
    size_t end = hunks.find('\n');
    std::string_view line = hunks.substr(0, end);
    hunks.remove_prefix(end == std::string_view::npos ? hunks.size() : end + 1);
    if (line.starts_with("@@")) {
      int last = lines.empty() ? 0 : lines.back().number;
      if (!ReadHead(line, old_line, new_line) || new_line < last) return lines;
      ++hunk;
    } else if (hunk == 0 || new_line >= kLineMax || old_line >= kLineMax) {
      return lines;
    } else if (line.starts_with('+')) {
      lines.push_back({new_line++, 0, hunk, std::string(line.substr(1))});
    } else if (line.starts_with('-')) {
      ++old_line;
    } else if (line.starts_with(' ') || line.empty()) {
      lines.push_back(
          {new_line++, old_line++, hunk, std::string(line.empty() ? line : line.substr(1))});
    } else if (!line.starts_with('\\')) {  // "\ No newline at end of file"
      return lines;
    }
  }
  return lines;
}

std::vector<DiffFile> ParseDiff(std::string_view diff) {
  constexpr std::string_view kStart = "\ndiff --git ";
  constexpr std::string_view kBlobs = "\nindex ";
  constexpr std::string_view kOld = "\n--- a/";
  constexpr std::string_view kNew = "\n+++ b/";
  auto line_after = [](std::string_view text, size_t from) {
    return text.substr(from, text.find('\n', from) - from);
  };
  std::vector<DiffFile> files;
  while (!diff.empty()) {
    std::string_view file = diff.substr(0, diff.find(kStart));
    diff.remove_prefix(std::min(diff.size(), file.size() + 1));
    // The head ends where the hunks begin: a line of the file may look like part of it.
    size_t hunks = file.find("\n@@ ");
    std::string_view head = file.substr(0, hunks);
    size_t path = head.find(kNew);
    if (hunks == std::string_view::npos || path == std::string_view::npos) continue;
    size_t old_path = head.find(kOld);
    DiffFile parsed;
    // Git ends a name with a space in it by a tab.
    parsed.path = std::string(line_after(head, path + kNew.size()));
    if (parsed.path.ends_with('\t')) parsed.path.pop_back();
    parsed.old_path = old_path == std::string_view::npos
                          ? parsed.path
                          : std::string(line_after(head, old_path + kOld.size()));
    if (parsed.old_path.ends_with('\t')) parsed.old_path.pop_back();
    const size_t blobs = head.find(kBlobs);
    if (blobs != std::string_view::npos) {
      std::string_view names = line_after(head, blobs + kBlobs.size());
      names = names.substr(0, names.find(' '));
      const size_t dots = names.find("..");
      if (dots != std::string_view::npos) parsed.blob = std::string(names.substr(dots + 2));
    }
    parsed.lines = ParseHunks(file.substr(hunks + 1));
    files.push_back(std::move(parsed));
  }
  return files;
}

}  // namespace forge
