// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/sys.h"
#include "codec/text/neutral.h"

namespace cli {

// Writes a command's answer to standard output. Fails with kIo if the reader is gone, or the disk
// is full.
inline Status Print(std::string_view text) { return sys::WriteAll(STDOUT_FILENO, text); }

// Does the same for lines in which strangers have a say, by the name of a file or a policy's text:
// a terminal or a CI log obeys nothing in them.
inline Status PrintLines(std::string_view text) {
  constexpr size_t kLineBytesMax = 65536;
  std::string out;
  while (!text.empty()) {
    size_t end = text.find('\n');
    out += codec::NeutralLine(text.substr(0, end), kLineBytesMax) + "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return Print(out);
}

}  // namespace cli
