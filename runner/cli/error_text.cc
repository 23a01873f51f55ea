// SPDX-License-Identifier: Apache-2.0
#include "cli/error_text.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "codec/text/neutral.h"

namespace cli {
namespace {

// The part before ": error: "; empty if there is none.
std::string_view PlaceText(std::string_view what) {
  size_t end = what.find(": error: ");
  return end == std::string_view::npos ? std::string_view() : what.substr(0, end);
}

// "FILE:LINE:COL: error: ..." or "FILE: error: ...".
bool BeginsWithPlace(const Error& error) {
  std::string_view place = PlaceText(error.what);
  if (place.empty()) return false;
  return PlaceOf(error).line > 0 ||
         (place.find(' ') == std::string_view::npos && place.find(':') == std::string_view::npos);
}

int NumberOf(std::string_view text) {
  int number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Line `number` of `source`, from 1.
std::string_view LineOf(std::string_view source, int number) {
  for (; number > 1 && !source.empty(); --number) {
    size_t end = source.find('\n');
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
  }
  return source.substr(0, source.find('\n'));
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

constexpr size_t kLineBytesMax = 65536;
constexpr size_t kShownBytesMax = 200;  // A longer line would hide the message.

// Our own text may have several lines. Parts of each may come from outside, and a CI's log reader
// looks for commands behind an indentation too.
std::string Visible(std::string_view text) {
  std::string out;
  for (;;) {
    size_t end = text.find('\n');
    out += codec::NeutralLine(text.substr(0, end), kLineBytesMax);
    if (end == std::string_view::npos) return out;
    out += "\n  ";
    text.remove_prefix(end + 1);
  }
}

std::string Message(const Error& error) {
  return (BeginsWithPlace(error) ? "" : "agentic-ci: error: ") + Visible(error.what) + "\n";
}

std::string Hint(const Error& error) {
  return error.hint.empty() ? "" : "agentic-ci: hint: " + Visible(error.hint) + "\n";
}

}  // namespace

std::string RenderError(const Error& error) { return Message(error) + Hint(error); }

codec::Position PlaceOf(const Error& error) {
  std::string_view place = PlaceText(error.what);
  size_t column = place.rfind(':');
  if (column == std::string_view::npos || column == 0) return {};
  size_t line = place.rfind(':', column - 1);
  if (line == std::string_view::npos || line == 0) return {};
  codec::Position at{NumberOf(place.substr(line + 1, column - line - 1)),
                     NumberOf(place.substr(column + 1))};
  return at.line > 0 && at.column > 0 ? at : codec::Position{};
}

std::string RenderErrorIn(const Error& error, std::string_view source) {
  codec::Position at = PlaceOf(error);
  std::string_view line = LineOf(source, at.line);
  if (at.line == 0 || line.empty() || line.size() > kShownBytesMax) return RenderError(error);
  // The number and the bar keep a log reader from taking the line for a command.
  std::string number = std::to_string(at.line) + " | ";
  size_t before = std::min(static_cast<size_t>(at.column - 1), line.size());
  // With something behind it, since blanks at an end are dropped.
  std::string shown = codec::NeutralLine(std::string(line.substr(0, before)) + "^", kLineBytesMax);
  return Message(error) + number + codec::NeutralLine(line, kLineBytesMax) + "\n" +
         std::string(number.size() - 2, ' ') + "| " + std::string(Characters(shown) - 1, ' ') +
         "^\n" + Hint(error);
}

}  // namespace cli
