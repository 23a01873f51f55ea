// SPDX-License-Identifier: Apache-2.0
#include "codec/text/shell_word.h"

namespace codec {

std::string ShellWord(std::string_view text) {
  std::string word = "'";
  for (char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace codec
