// SPDX-License-Identifier: Apache-2.0
#include "attest/trailer.h"

#include <algorithm>

#include "base/ascii.h"

namespace attest {

std::optional<std::string> FindTrailer(std::string_view message, std::string_view name) {
  constexpr std::string_view kBlanks = " \t\r";
  std::optional<std::string> value;
  const std::string wanted = ascii::LowerCase(std::string(name) + ":");
  while (!message.empty()) {
    std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(message.size(), line.size() + 1));
    if (ascii::LowerCase(std::string(line.substr(0, wanted.size()))) != wanted) continue;
    line.remove_prefix(wanted.size());
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    while (!line.empty() && kBlanks.find(line.back()) != std::string_view::npos) {
      line.remove_suffix(1);
    }
    value = std::string(line);
  }
  return value;
}

}  // namespace attest
