// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sigstore {

// A point in time. To the nanosecond, since trusted roots end "at 23:59:59.999" and timestamps have
// fractions: a comparison must not be decided by rounding.
struct Instant {
  int64_t seconds = 0;  // Since 1970, UTC.
  int32_t nanos = 0;    // 0 to 999999999, forward from `seconds`.
  auto operator<=>(const Instant&) const = default;
};

// A closed interval, as sigstore_common.proto's TimeRange: both ends belong to it.
struct Interval {
  Instant start;
  std::optional<Instant> end;  // nullopt if still open.
  bool Contains(const Instant& at) const { return start <= at && (!end || at <= *end); }
};

// Parses a time such as "2022-12-31T23:59:59.999Z": RFC 3339 in UTC with up to nine digits of
// fraction, as proto3 JSON writes a Timestamp. Returns nullopt for anything else.
std::optional<Instant> ParseInstant(std::string_view text);

}  // namespace sigstore
