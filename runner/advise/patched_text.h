// SPDX-License-Identifier: Apache-2.0
// A text whose lines are changed one by one, and the change as a patch: `policy suggest` edits a
// policy with it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/data/position.h"

namespace advise {

// A text whose lines are changed one by one, and the change as a patch.
class PatchedText {
 public:
  explicit PatchedText(const std::string& text);

  // Returns the text as it is now. Ends with a line end, whether it did or not, unless it is empty.
  std::string Text() const;
  size_t size() const { return lines_.size(); }
  // Returns a line without its end; `line` counts from 0 and is below size().
  const std::string& operator[](size_t line) const { return lines_[line].text; }
  // Returns the byte there, which is the character in a line of ASCII; 0 outside of the text.
  char CharAt(codec::Position at) const;
  bool changed() const { return changed_; }

  // Inserts lines, without their ends, in front of line `before`, at most size().
  void Insert(size_t before, const std::vector<std::string>& lines);
  void Replace(size_t line, std::string text);

  // Renders what `git apply` takes: a unified diff of `path` with three lines of context.
  std::string RenderPatch(const std::string& path) const;

 private:
  struct Line {
    std::string text;
    std::string was;
    enum { kKept, kReplaced, kAdded } state = kKept;
  };

  std::vector<Line> lines_;
  bool open_end_ = false;  // The last line had no end.
  bool changed_ = false;
};

}  // namespace advise
