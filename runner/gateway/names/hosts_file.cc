// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/hosts_file.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"

namespace gateway {
namespace {

std::string_view TakeWord(std::string_view& line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

HostsFile ParseHostsFile(std::string_view text) {
  HostsFile hosts;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::optional<policy::Address> address = policy::ParseAddress(TakeWord(line));
    if (!address.has_value()) continue;
    for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
      hosts[ascii::LowerCase(word)].push_back(*address);
    }
  }
  return hosts;
}

}  // namespace gateway
