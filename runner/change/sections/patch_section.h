// SPDX-License-Identifier: Apache-2.0
// Parses a patch once, for judging and for applying: what is applied is what was judged. (libgit2's
// parser is not used: it rejects what `git apply` accepts, such as a name with a space for an empty
// file, and accepts what it rejects, such as fuzzy headers.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace change {

struct PatchLine {
  char kind = ' ';        // ' ', '+' or '-'.
  std::string_view text;  // Borrowed from the patch; without the kind and the newline.
  bool newline = true;    // False if "\ No newline at end of file" follows.
};

struct PatchHunk {
  int64_t old_start = 0;  // 1-based; with no old line, the line after which to insert.
  int64_t old_count = 0;
  int64_t new_start = 0;
  std::vector<PatchLine> lines;
};

// The forward half of a "GIT binary patch".
struct BinaryBlock {
  bool delta = false;      // Against the old bytes; otherwise the new bytes themselves.
  int64_t size = 0;        // The inflated size of what is encoded.
  std::string_view lines;  // Borrowed; base85, each line with its length and newline.
};

// One `diff --git` section.
struct PatchSection {
  std::string old_path;  // Unquoted, without `a/`; empty for a created file.
  std::string new_path;  // Empty for a deleted file.
  int old_mode = 0;      // 0 if there is no such file, or the patch does not say.
  int new_mode = 0;
  std::string old_id;  // 40 hexadecimal digits, or empty when the bytes do not change.
  std::string new_id;
  std::vector<PatchHunk> hunks;
  std::optional<BinaryBlock> binary;
  std::string_view text;  // The whole section, borrowed from the patch.
};

// Reads what git and libgit2 write with full ids. Fails with kInvalid for anything else, so that
// nothing can hide in what two readers would read in two ways. Linear in `patch`, which must
// outlive the sections.
Result<std::vector<PatchSection>> ReadSections(std::string_view patch);

// Returns the new bytes of a section's file, from exactly the old ones. Fails with kInvalid if a
// line differs or the binary data is not sound. Results above 1 GiB are refused.
Result<std::string> ApplySection(const PatchSection& section, std::string_view old_bytes);

}  // namespace change
