// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace report {

// A line of a patch as a page shows it.
struct PatchRow {
  enum class Kind { kContext, kAdded, kRemoved, kNote };
  Kind kind = Kind::kContext;
  int64_t old_line = 0;  // 0 if not in the old file.
  int64_t new_line = 0;
  std::string_view text;  // Without the sign in front; kNote: as it stands.
};

// The part of a patch that is about one file. Views into the patch.
struct PatchFile {
  std::string_view header;                   // The text that follows "diff --git ".
  std::vector<std::string_view> facts;       // "rename from a", "similarity index 90%", ...
  std::vector<std::vector<PatchRow>> hunks;  // "@@ ... @@" first, as a note.
  bool binary = false;
  size_t rows = 0;
};

// Splits a patch for display. Total: any bytes whatever give some files.
std::vector<PatchFile> SplitPatch(std::string_view patch);

}  // namespace report
