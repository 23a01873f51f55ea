// SPDX-License-Identifier: Apache-2.0
// The difference of a pull request as forges give it: which lines can carry a comment.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forge {

// One line of the new file that the difference shows.
struct DiffLine {
  int number = 0;      // From 1, in the new file.
  int old_number = 0;  // In the old one; 0 if added.
  int hunk = 0;        // A comment cannot span two.
  std::string text;    // Without its newline.
};

struct DiffFile {
  std::string path;
  std::string old_path;  // The old path of a renamed file; else the same.
  std::string blob;      // Git's name of the new file's, abbreviated; empty if not known.
  bool removed = false;
  std::vector<DiffLine> lines;  // By number. Empty for binary files and where the forge has cut it.

  // Returns the line of that number, or null.
  const DiffLine* Find(int number) const;
};

// Reads the hunks of one file ("@@ -1,2 +3,4 @@" and what follows) up to the first line that does
// not fit: what is not understood carries no comment.
std::vector<DiffLine> ParseHunks(std::string_view hunks);

// Bounds what is held of a difference, which has an object for each line and file.
struct DiffLimits {
  size_t line_bytes_max = 16 << 20;
  size_t name_bytes_max = 32 << 20;
};

// Reads a whole difference in git's format. A file whose lines exceed what is left of the limit has
// none. Fails with kRefused if the names of the files exceed theirs.
Result<std::vector<DiffFile>> ParseDiff(std::string_view diff, const DiffLimits& limits = {});

}  // namespace forge
