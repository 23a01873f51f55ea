// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace codec {

// Where something stands in a file a person wrote. Line and column count from 1; 0: not from a
// file.
struct Position {
  int line = 0;
  int column = 0;
};

// "file:line:col", or "file" when the position is unknown.
inline std::string Locate(const std::string& file, Position at) {
  if (at.line == 0) return file;
  return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace codec
