// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/instant.h"

#include <charconv>
#include <chrono>

namespace sigstore {
namespace {

// Takes `digits` digits and what must stand behind them from the front of `text`; -1 if it does
// not begin so.
int TakeNumber(std::string_view* text, size_t digits, char behind) {
  if (text->size() <= digits || (*text)[digits] != behind) return -1;
  std::string_view number = text->substr(0, digits);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  int value = -1;
  std::from_chars(number.data(), number.data() + number.size(), value);
  text->remove_prefix(digits + 1);
  return value;
}

}  // namespace

std::optional<Instant> ParseInstant(std::string_view text) {
  bool whole = text.size() == 20;  // No fraction.
  int year = TakeNumber(&text, 4, '-');
  int month = TakeNumber(&text, 2, '-');
  int day = TakeNumber(&text, 2, 'T');
  int hour = TakeNumber(&text, 2, ':');
  int minute = TakeNumber(&text, 2, ':');
  int second = TakeNumber(&text, 2, whole ? 'Z' : '.');
  if (year < 0 || month < 0 || day < 0 || hour < 0 || minute < 0 || second < 0) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(year),
                                   std::chrono::month(static_cast<unsigned>(month)),
                                   std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  Instant instant{((days * 24 + hour) * 60 + minute) * 60 + second};
  if (whole) return instant;
  size_t digits = text.empty() ? 0 : text.size() - 1;
  if (digits < 1 || digits > 9) return std::nullopt;
  instant.nanos = TakeNumber(&text, digits, 'Z');
  if (instant.nanos < 0) return std::nullopt;
  for (; digits < 9; ++digits) instant.nanos *= 10;
  return instant;
}

}  // namespace sigstore
