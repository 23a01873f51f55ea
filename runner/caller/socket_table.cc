// SPDX-License-Identifier: Apache-2.0
#include "caller/socket_table.h"

#include <string.h>

#include <algorithm>
#include <charconv>

namespace caller {
namespace {

constexpr std::string_view kEstablished = "01";
constexpr int kInodeField =
    9;  // Counted from 0: "sl local remote st tx:rx tr:tm retr uid to inode".

std::string_view TakeField(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(field.size());
  return field;
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text, int base) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "0100C80A:1F90": 32-bit words as this machine holds them, in hexadecimal.
std::optional<Endpoint> ParseEnd(std::string_view text) {
  size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  std::optional<uint16_t> port = ParseNumber<uint16_t>(text.substr(colon + 1), 16);
  if (!port.has_value()) return std::nullopt;
  Endpoint end;
  end.port = *port;
  size_t first = 0;
  if (colon == 8) {
    end.address[10] = end.address[11] = 0xff;
    first = 12;
  }
  for (size_t i = 0; i < colon / 8; ++i) {
    std::optional<uint32_t> word = ParseNumber<uint32_t>(text.substr(i * 8, 8), 16);
    if (!word.has_value()) return std::nullopt;
    ::memcpy(&end.address[first + i * 4], &*word, 4);
  }
  return end;
}

}  // namespace

std::optional<uint64_t> FindSocketInode(std::string_view table, const Endpoint& local,
                                        const Endpoint& remote) {
  while (!table.empty()) {
    size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    TakeField(line);
    if (ParseEnd(TakeField(line)) != std::optional(local)) continue;
    if (ParseEnd(TakeField(line)) != std::optional(remote)) continue;
    if (TakeField(line) != kEstablished) continue;
    std::string_view inode;
    for (int field = 4; field <= kInodeField; ++field) inode = TakeField(line);
    std::optional<uint64_t> number = ParseNumber<uint64_t>(inode, 10);
    if (number.has_value() && *number != 0) return number;
  }
  return std::nullopt;
}

}  // namespace caller
