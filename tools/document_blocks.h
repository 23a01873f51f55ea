// SPDX-License-Identifier: Apache-2.0
// The parts of documents that are made from the program's own tables, each between two comments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tools {

struct DocumentBlock {
  std::string path;  // From the root.
  std::string name;  // As ReplaceBlock() takes it.
  std::string text;
};
// Returns the blocks of all documents. `root` has runner/CMakeLists.txt, which names the rooms.
Result<std::vector<DocumentBlock>> DocumentBlocks(const std::string& root);

// A paragraph in lines of at most 120 columns, as in all documents.
std::string Wrapped(std::string_view text);

// Returns the texts as code, with `between` them.
std::string Codes(const std::vector<std::string>& texts, std::string_view between);

}  // namespace tools
