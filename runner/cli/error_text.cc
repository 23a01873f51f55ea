// SPDX-License-Identifier: Apache-2.0
#include "cli/error_text.h"

#include <algorithm>
#include <string_view>

#include "codec/text/neutral.h"

namespace cli {
namespace {

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
  return (error.place.file.empty() ? "agentic-ci: error: " : "") + Visible(error.what) + "\n";
}

std::string Hint(const Error& error) {
  return error.hint.empty() ? "" : "agentic-ci: hint: " + Visible(error.hint) + "\n";
}

}  // namespace

std::string RenderError(const Error& error) { return Message(error) + Hint(error); }

std::string RenderErrorIn(const Error& error, std::string_view source) {
  const ErrorPlace& at = error.place;
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
