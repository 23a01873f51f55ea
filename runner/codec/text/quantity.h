// SPDX-License-Identifier: Apache-2.0
// Amounts as people write them on a command line or in a file: durations, sizes, counts.
// Every Parse fails with kInvalid and a message that shows what a valid one looks like.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace codec {

// No useful limit is larger, and the sum of two never overflows.
constexpr int64_t kDurationSecondsMax = int64_t{366} * 24 * 3600;
constexpr int64_t kSizeBytesMax = int64_t{1} << 50;
constexpr int64_t kCountMax = 1'000'000'000;

// Parses "90s", "20m", "1h30m": hours, minutes and seconds, in this order, each at most once, no
// space. "off" is 0, and "0s" too. Gives seconds.
Result<int64_t> ParseDuration(std::string_view text);

// Parses "64MiB", "4GiB", "512KiB", or plain bytes: "4096". Gives bytes.
Result<int64_t> ParseSize(std::string_view text);
// Renders in the largest unit that divides evenly: 4294967296 becomes "4GiB", 1000 becomes "1000".
std::string RenderSize(int64_t bytes);

// Parses a whole number from 1 to kCountMax.
Result<int64_t> ParseCount(std::string_view text);

// Parses a share of processors: a positive decimal number such as "2" or "1.5", or "all", which is
// 0.
Result<double> ParseCpus(std::string_view text);

// Parses US dollars: a positive decimal number such as "5" or "0.25", at most a million.
Result<double> ParseDollars(std::string_view text);

}  // namespace codec
