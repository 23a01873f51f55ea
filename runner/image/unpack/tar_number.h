// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace image {

// Parses a number of a tar header: octal digits in spaces and NULs, or GNU's base 256, which may be
// negative. An empty field is 0. Nothing for anything else, and for what int64_t cannot hold.
std::optional<int64_t> ParseTarNumber(std::string_view field);

// "1700000000.123456789" of a pax header, which may be negative.
struct TarTime {
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
};
std::optional<TarTime> ParseTarTime(std::string_view text);

// Parses decimal digits alone, of a pax header.
std::optional<int64_t> ParseTarDecimal(std::string_view text);

}  // namespace image
