// SPDX-License-Identifier: Apache-2.0
#include "forge/diff_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "codec/text/git_name.h"

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

// Counts what a line takes with the room that a growing list has.
size_t BytesOf(const DiffLine& line) { return 2 * sizeof line + line.text.size(); }

// Reads the hunks that ParseHunks() reads. Returns nullopt if they take more than `bytes_left`,
// from which it takes them otherwise.
std::optional<std::vector<DiffLine>> ReadHunks(std::string_view hunks, size_t* bytes_left) {
  std::vector<DiffLine> lines;
  size_t bytes = 0;
  int old_line = 0;
  int new_line = 0;
  int hunk = 0;
  while (!hunks.empty()) {
    size_t end = hunks.find('\n');
    std::string_view line = hunks.substr(0, end);
    hunks.remove_prefix(end == std::string_view::npos ? hunks.size() : end + 1);
    if (line.starts_with("@@")) {
      int last = lines.empty() ? 0 : lines.back().number;
      if (!ReadHead(line, old_line, new_line) || new_line < last) break;
      ++hunk;
    } else if (hunk == 0 || new_line >= kLineMax || old_line >= kLineMax) {
      break;
    } else if (line.starts_with('-')) {
      ++old_line;
    } else if (line.starts_with('+') || line.starts_with(' ') || line.empty()) {
      const bool added = line.starts_with('+');
      lines.push_back({new_line++, added ? 0 : old_line++, hunk,
                       std::string(line.empty() ? line : line.substr(1))});
      bytes += BytesOf(lines.back());
      if (bytes > *bytes_left) return std::nullopt;
    } else if (!line.starts_with('\\')) {  // "\ No newline at end of file"
      break;
    }
  }
  *bytes_left -= bytes;
  return lines;
}

bool Take(std::string_view& line, std::string_view start) {
  if (!line.starts_with(start)) return false;
  line.remove_prefix(start.size());
  return true;
}

// Puts the name behind "--- " or "+++ " into `path`, unless it is /dev/null.
void ReadSide(std::string_view text, std::string_view side, std::string* path) {
  // Git ends a name with a space in it by a tab.
  if (text.ends_with('\t')) text.remove_suffix(1);
  const std::optional<std::string> name = codec::UnquoteGitName(text);
  if (name && name->starts_with(side)) *path = name->substr(side.size());
}

// Reads what stands above the hunks. Without a name that can be read, `path` is empty.
DiffFile ReadHeadOfFile(std::string_view head) {
  DiffFile file;
  while (!head.empty()) {
    std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(head.size(), line.size() + 1));
    if (Take(line, "diff --git ")) {
      file.path = file.old_path = codec::NameOfDiff(line).value_or("");
    } else if (Take(line, "rename from ") || Take(line, "copy from ")) {
      file.old_path = codec::UnquoteGitName(line).value_or("");
    } else if (Take(line, "rename to ") || Take(line, "copy to ")) {
      file.path = codec::UnquoteGitName(line).value_or("");
    } else if (Take(line, "--- ")) {
      ReadSide(line, "a/", &file.old_path);
    } else if (Take(line, "+++ ")) {
      ReadSide(line, "b/", &file.path);
    } else if (line.starts_with("deleted file mode ")) {
      file.removed = true;
    } else if (Take(line, "index ")) {
      line = line.substr(0, line.find(' '));
      const size_t dots = line.find("..");
      if (dots != std::string_view::npos) file.blob = std::string(line.substr(dots + 2));
    }
  }
  if (file.old_path.empty()) file.old_path = file.path;
  return file;
}

}  // namespace

const DiffLine* DiffFile::Find(int number) const {
  auto found = std::lower_bound(lines.begin(), lines.end(), number,
                                [](const DiffLine& line, int n) { return line.number < n; });
  return found != lines.end() && found->number == number ? &*found : nullptr;
}

std::vector<DiffLine> ParseHunks(std::string_view hunks) {
  size_t bytes_left = std::numeric_limits<size_t>::max();
  return ReadHunks(hunks, &bytes_left).value_or(std::vector<DiffLine>());
}

Result<std::vector<DiffFile>> ParseDiff(std::string_view diff, const DiffLimits& limits) {
  constexpr std::string_view kStart = "\ndiff --git ";
  std::vector<DiffFile> files;
  size_t lines_left = limits.line_bytes_max;
  size_t names_left = limits.name_bytes_max;
  while (!diff.empty()) {
    std::string_view file = diff.substr(0, diff.find(kStart));
    diff.remove_prefix(std::min(diff.size(), file.size() + 1));
    // The head ends where the hunks begin: a line of the file may look like part of it.
    const size_t hunks = file.find("\n@@ ");
    DiffFile parsed = ReadHeadOfFile(file.substr(0, hunks));
    if (parsed.path.empty()) continue;
    const size_t bytes =
        2 * sizeof parsed + parsed.path.size() + parsed.old_path.size() + parsed.blob.size();
    if (bytes > names_left) {
      return Error{Code::kRefused, "the difference has too many files to be read"};
    }
    names_left -= bytes;
    if (hunks != std::string_view::npos) {
      std::optional<std::vector<DiffLine>> lines = ReadHunks(file.substr(hunks + 1), &lines_left);
      if (lines) parsed.lines = *std::move(lines);
    }
    files.push_back(std::move(parsed));
  }
  return files;
}

}  // namespace forge
