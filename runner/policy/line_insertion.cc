// SPDX-License-Identifier: Apache-2.0
#include "policy/line_insertion.h"

#include <algorithm>

namespace policy {
namespace {

constexpr size_t kContext = 3;

// "12,4" as in a hunk's head: an empty range is named by the line before it.
std::string Range(size_t first, size_t count) {
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

// What git makes of a path: relative to the folder that the patch is applied in.
std::string PatchPath(const std::string& path) {
  std::string relative = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  return relative.starts_with("./") ? relative.substr(2) : relative;
}

}  // namespace

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string ApplyInsertion(const std::string& text, const LineInsertion& insertion) {
  std::vector<std::string> lines = SplitLines(text);
  auto at = lines.begin() + static_cast<std::ptrdiff_t>(std::min(insertion.after, lines.size()));
  lines.insert(at, insertion.lines.begin(), insertion.lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string RenderInsertion(const std::string& path, const std::string& text,
                            const LineInsertion& insertion) {
  std::vector<std::string> lines = SplitLines(text);
  size_t after = std::min(insertion.after, lines.size());
  size_t first = after - std::min(after, kContext);
  size_t end = std::min(after + kContext, lines.size());
  // A last line without an end gets one, which is a change of that line.
  bool open_end = !text.empty() && text.back() != '\n' && end == lines.size();
  std::string name = PatchPath(path);
  std::string out = "--- a/" + name + "\n+++ b/" + name + "\n@@ -" + Range(first, end - first) +
                    " +" + Range(first, end - first + insertion.lines.size()) + " @@\n";
  for (size_t i = first; i <= end; ++i) {
    if (i == after) {
      for (const std::string& line : insertion.lines) out += "+" + line + "\n";
    }
    if (i == end) break;
    bool last = open_end && i + 1 == lines.size();
    out += (last ? "-" : " ") + lines[i] + "\n";
    if (last) out += "\\ No newline at end of file\n+" + lines[i] + "\n";
  }
  return out;
}

}  // namespace policy
