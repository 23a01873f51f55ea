// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/text/neutral.h"

namespace codec {

// Where something stands in a file a person wrote. Line and column count from 1; 0: not from a
// file.
struct Position {
  int line = 0;
  int column = 0;
};

// "file:line:col", or "file" when the position is unknown. A file's name is a stranger's, and shown
// as harmless as its text.
inline std::string Locate(const std::string& file, Position at) {
  std::string name = NeutralLine(file);
  if (at.line == 0) return name;
  return name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace codec
