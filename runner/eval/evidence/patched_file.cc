// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/patched_file.h"

#include <vector>

namespace eval {
namespace {

using Kind = report::PatchRow::Kind;

// Returns the lines with their ends.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

bool SameLine(std::string_view line, std::string_view row) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line == row;
}

}  // namespace

std::optional<std::string> ApplyHunks(std::string_view before, const report::PatchFile& patch) {
  if (patch.binary) return std::nullopt;
  std::vector<std::string_view> lines = LinesOf(before);
  std::string after;
  size_t next = 0;  // The first line that is not yet in `after`.
  for (const std::vector<report::PatchRow>& hunk : patch.hunks) {
    bool last_is_new = false;
    for (const report::PatchRow& row : hunk) {
      if (row.kind == Kind::kNote) {
        // "\ No newline at end of file", about the line above.
        if (row.text.starts_with("\\") && last_is_new && after.ends_with('\n')) after.pop_back();
        continue;
      }
      last_is_new = row.kind != Kind::kRemoved;
      if (row.kind == Kind::kAdded) {
        after += std::string(row.text) + "\n";
        continue;
      }
      size_t wanted = static_cast<size_t>(row.old_line) - 1;
      if (row.old_line < 1 || wanted < next || wanted >= lines.size()) return std::nullopt;
      while (next < wanted) after += lines[next++];
      if (!SameLine(lines[next], row.text)) return std::nullopt;
      if (row.kind == Kind::kContext) after += lines[next];
      ++next;
    }
  }
  while (next < lines.size()) after += lines[next++];
  return after;
}

}  // namespace eval
