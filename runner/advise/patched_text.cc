// SPDX-License-Identifier: Apache-2.0
#include "advise/patched_text.h"

#include <algorithm>
#include <utility>

namespace advise {
namespace {

constexpr size_t kContext = 3;
constexpr std::string_view kNoEnd = "\n\\ No newline at end of file";

// One line of a hunk: what stands in front of it, and its text. '~' is the last line of a text
// without a last line end: it gets one, where a hunk shows it.
using PatchLine = std::pair<char, std::string>;

bool IsChange(const PatchLine& line) { return line.first == '-' || line.first == '+'; }

size_t CountWithout(const std::vector<PatchLine>& lines, size_t begin, size_t end, char sign) {
  size_t count = 0;
  for (size_t i = begin; i < end; ++i) count += lines[i].first == sign ? 0 : 1;
  return count;
}

// "12,4" as in a hunk's head: an empty range is named by the line before it.
std::string RenderRange(const std::vector<PatchLine>& lines, size_t begin, size_t end,
                        char not_of) {
  size_t first = CountWithout(lines, 0, begin, not_of);
  size_t count = CountWithout(lines, begin, end, not_of);
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

std::string RenderLine(const PatchLine& line) {
  if (line.first != '~') return line.first + line.second + "\n";
  return "-" + line.second + std::string(kNoEnd) + "\n+" + line.second + "\n";
}

// Returns a path as git takes it: relative to the folder that the patch is applied in.
std::string PatchPath(const std::string& path) {
  std::string relative = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  return relative.starts_with("./") ? relative.substr(2) : relative;
}

// Returns where the hunk of the change at `change` ends: changes that are near share one.
size_t EndOfHunk(const std::vector<PatchLine>& lines, size_t change) {
  size_t end = change + 1;
  for (size_t i = end; i < lines.size() && i < end + 2 * kContext; ++i) {
    if (IsChange(lines[i])) end = i + 1;
  }
  return std::min(end + kContext, lines.size());
}

}  // namespace

PatchedText::PatchedText(const std::string& text)
    : open_end_(!text.empty() && text.back() != '\n') {
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    lines_.push_back({text.substr(start, end - start), {}});
    start = end + 1;
  }
}

std::string PatchedText::Text() const {
  std::string text;
  for (const Line& line : lines_) text += line.text + "\n";
  return text;
}

char PatchedText::CharAt(codec::Position at) const {
  size_t line = static_cast<size_t>(at.line);
  size_t column = static_cast<size_t>(at.column);
  bool inside = line >= 1 && line <= size() && column >= 1 && column <= (*this)[line - 1].size();
  return inside ? (*this)[line - 1][column - 1] : '\0';
}

void PatchedText::Insert(size_t before, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(before++), {line, {}, Line::kAdded});
  }
  changed_ = changed_ || !lines.empty();
}

void PatchedText::Replace(size_t line, std::string text) {
  Line& changed = lines_[line];
  if (changed.state == Line::kKept) {
    changed.was = std::move(changed.text);
    changed.state = Line::kReplaced;
  }
  changed.text = std::move(text);
  changed_ = true;
}

std::string PatchedText::RenderPatch(const std::string& path) const {
  std::vector<PatchLine> lines;
  size_t last = lines_.size();  // The one that was last in the text.
  for (size_t i = 0; open_end_ && i < lines_.size(); ++i) {
    if (lines_[i].state != Line::kAdded) last = i;
  }
  for (size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    std::string no_end(i == last ? kNoEnd : "");
    if (line.state == Line::kReplaced) lines.emplace_back('-', line.was + no_end);
    if (line.state == Line::kKept) lines.emplace_back(i == last ? '~' : ' ', line.text);
    if (line.state != Line::kKept) lines.emplace_back('+', line.text);
  }
  std::string name = PatchPath(path);
  std::string patch = "--- a/" + name + "\n+++ b/" + name + "\n";
  size_t done = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i < done || !IsChange(lines[i])) continue;
    size_t begin = std::max(done, i - std::min(i, kContext));
    done = EndOfHunk(lines, i);
    patch += "@@ -" + RenderRange(lines, begin, done, '+') + " +" +
             RenderRange(lines, begin, done, '-') + " @@\n";
    for (size_t shown = begin; shown < done; ++shown) patch += RenderLine(lines[shown]);
  }
  return patch;
}

}  // namespace advise
