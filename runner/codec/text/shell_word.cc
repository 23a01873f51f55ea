// SPDX-License-Identifier: Apache-2.0
#include "codec/text/shell_word.h"

#include <algorithm>

#include "base/ascii.h"

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

std::string ShellArgument(std::string_view text) {
  bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return ascii::IsAlphanumeric(c) ||
           std::string_view("-_./+,:@=%").find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : ShellWord(text);
}

}  // namespace codec
