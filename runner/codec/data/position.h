// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/text/neutral.h"

namespace codec {

// A place in a file that a person wrote. Line and column count from 1; 0 if not from a file.
struct Position {
  int line = 0;
  int column = 0;
};

// Returns "file:line:col", or "file" when the position is unknown. Outsiders choose files' names,
// so Locate makes the name harmless; LocateIn takes one that already is.
inline std::string LocateIn(std::string name, Position at) {
  if (at.line == 0) return name;
  name.append(":").append(std::to_string(at.line));
  return name.append(":").append(std::to_string(at.column));
}
inline std::string Locate(const std::string& file, Position at) {
  return LocateIn(NeutralLine(file), at);
}

}  // namespace codec
