// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace policy {

// Lines that are put into a text: behind its first `after` lines.
struct LineInsertion {
  size_t after = 0;
  std::vector<std::string> lines;  // Without their line ends.
};

// The text with the lines in it.
std::string ApplyInsertion(const std::string& text, const LineInsertion& insertion);

// The same as a patch that `git apply` takes: a unified diff of `path` with three lines of context.
std::string RenderInsertion(const std::string& path, const std::string& text,
                            const LineInsertion& insertion);

// The lines of a text without their ends; a last line end begins no further line.
std::vector<std::string> SplitLines(const std::string& text);

}  // namespace policy
