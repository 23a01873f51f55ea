// SPDX-License-Identifier: Apache-2.0
#include "codec/text/quantity.h"

#include <array>
#include <charconv>
#include <optional>

namespace codec {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

// Largest first: a duration names them in this order, a rendering tries them in this order.
constexpr std::array<Unit, 3> kTimeUnits = {{{"h", 3600}, {"m", 60}, {"s", 1}}};
constexpr std::array<Unit, 3> kSizeUnits = {
    {{"GiB", int64_t{1} << 30}, {"MiB", int64_t{1} << 20}, {"KiB", int64_t{1} << 10}}};

constexpr size_t kTextBytesMax = 64;  // Bounds what an error message repeats.

Error IsNot(std::string_view kind, std::string_view text, std::string_view example) {
  std::string shown(text.substr(0, kTextBytesMax));
  return Error{Code::kInvalid,
               "'" + shown + "' is not " + std::string(kind) + ", such as " + std::string(example)};
}

// Takes the digits at the front of `text`; nullopt if there is none or they exceed int64_t.
std::optional<int64_t> TakeDigits(std::string_view* text) {
  if (text->empty() || text->front() < '0' || text->front() > '9') return std::nullopt;
  int64_t number = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

}  // namespace

Result<int64_t> ParseDuration(std::string_view text) {
  if (text == "off") return int64_t{0};
  Error invalid = IsNot("a duration", text, "90s, 20m or 1h30m");
  if (text.empty()) return invalid;
  std::string_view rest = text;
  size_t next_unit = 0;
  int64_t seconds = 0;
  while (!rest.empty()) {
    std::optional<int64_t> number = TakeDigits(&rest);
    if (!number) return invalid;
    while (next_unit < kTimeUnits.size() && !rest.starts_with(kTimeUnits[next_unit].name)) {
      ++next_unit;
    }
    if (next_unit == kTimeUnits.size()) return invalid;
    const Unit& unit = kTimeUnits[next_unit++];
    rest.remove_prefix(unit.name.size());
    if (*number > kDurationSecondsMax / unit.factor) return invalid;
    seconds += *number * unit.factor;
  }
  if (seconds > kDurationSecondsMax) return invalid;
  return seconds;
}

Result<int64_t> ParseSize(std::string_view text) {
  Error invalid = IsNot("a size", text, "512KiB, 64MiB or 4GiB");
  std::string_view rest = text;
  std::optional<int64_t> number = TakeDigits(&rest);
  if (!number) return invalid;
  int64_t factor = rest.empty() ? 1 : 0;
  for (const Unit& unit : kSizeUnits) {
    if (rest == unit.name) factor = unit.factor;
  }
  if (factor == 0 || *number == 0 || *number > kSizeBytesMax / factor) return invalid;
  return *number * factor;
}

std::string RenderSize(int64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    if (bytes != 0 && bytes % unit.factor == 0) {
      return std::to_string(bytes / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(bytes);
}

Result<int64_t> ParseCount(std::string_view text) {
  std::string_view rest = text;
  std::optional<int64_t> number = TakeDigits(&rest);
  // To some readers, a zero at the beginning makes a number octal.
  if (!number || !rest.empty() || text[0] == '0' || *number > kCountMax) {
    return IsNot("a count", text, "1024");
  }
  return *number;
}

Result<double> ParseDollars(std::string_view text) {
  constexpr double kMost = 1e6;
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0) || number > kMost) {
    return IsNot("an amount of US dollars", text, "5 or 0.25");
  }
  return number;
}

Result<double> ParseCpus(std::string_view text) {
  if (text == "all") return 0.0;
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  constexpr double kLeast = 0.01;  // One percent: the finest quota that a scheduler keeps.
  constexpr double kMost = 4096;
  if (error != std::errc() || end != text.data() + text.size() || !(number >= kLeast) ||
      number > kMost) {
    return IsNot("a number of processors", text, "2, 1.5 or all");
  }
  return number;
}

}  // namespace codec
