// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/tar_number.h"

#include <charconv>
#include <limits>

namespace image {
namespace {

std::optional<int64_t> ParseBase256(std::string_view field) {
  // The first byte is 0x80 of a positive number, 0xff of a negative one; either could hold digits.
  unsigned char first = static_cast<unsigned char>(field[0]);
  bool negative = (first & 0x40) != 0;
  int64_t value = negative ? (first & 0x7f) - 0x80 : first & 0x7f;
  for (char byte : field.substr(1)) {
    if (value > (std::numeric_limits<int64_t>::max() >> 8) ||
        value < (std::numeric_limits<int64_t>::min() >> 8)) {
      return std::nullopt;
    }
    value = value * 256 + static_cast<unsigned char>(byte);
  }
  return value;
}

}  // namespace

std::optional<int64_t> ParseTarNumber(std::string_view field) {
  if (!field.empty() && (static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    return ParseBase256(field);
  }
  size_t first = field.find_first_not_of(' ');
  field.remove_prefix(first == std::string_view::npos ? field.size() : first);
  int64_t value = 0;
  size_t digits = 0;
  while (digits < field.size() && field[digits] >= '0' && field[digits] <= '7') {
    value = value * 8 + (field[digits++] - '0');  // At most 12 digits: 36 bits.
    if (digits > 20) return std::nullopt;
  }
  // Bytes behind a NUL have no meaning: old writers leave what was there.
  std::string_view rest = field.substr(digits);
  size_t end = rest.find_first_not_of(' ');
  if (end != std::string_view::npos && rest[end] != '\0') return std::nullopt;
  return value;
}

std::optional<int64_t> ParseTarDecimal(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text[0] == '-') {
    return std::nullopt;
  }
  return value;
}

std::optional<TarTime> ParseTarTime(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  size_t point = text.find('.');
  std::optional<int64_t> seconds = ParseTarDecimal(text.substr(0, point));
  if (!seconds) return std::nullopt;
  TarTime time{*seconds, 0};
  if (point != std::string_view::npos) {
    int64_t scale = 100'000'000;
    for (char digit : text.substr(point + 1)) {
      if (digit < '0' || digit > '9') return std::nullopt;
      time.nanoseconds += (digit - '0') * scale;
      scale /= 10;
    }
  }
  if (!negative) return time;
  if (time.nanoseconds == 0) return TarTime{-time.seconds, 0};
  return TarTime{-time.seconds - 1, 1'000'000'000 - time.nanoseconds};
}

}  // namespace image
