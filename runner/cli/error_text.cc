// SPDX-License-Identifier: Apache-2.0
#include "cli/error_text.h"

#include <string_view>

#include "base/ascii.h"
#include "codec/neutral.h"

namespace cli {
namespace {

// "FILE:LINE:COL: error: ..." or "FILE: error: ...".
bool BeginsWithPlace(std::string_view what) {
  size_t end = what.find(": error: ");
  if (end == 0 || end == std::string_view::npos) return false;
  std::string_view place = what.substr(0, end);
  size_t column = place.rfind(':');
  if (column == std::string_view::npos) return place.find(' ') == std::string_view::npos;
  size_t line = place.rfind(':', column - 1);
  return line != std::string_view::npos && line > 0 && ascii::IsNumber(place.substr(column + 1)) &&
         ascii::IsNumber(place.substr(line + 1, column - line - 1));
}

constexpr size_t kLineBytesMax = 65536;

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

}  // namespace

std::string RenderError(const Error& error) {
  std::string text = BeginsWithPlace(error.what) ? "" : "agentic-ci: error: ";
  text += Visible(error.what) + "\n";
  if (!error.hint.empty()) text += "agentic-ci: hint: " + Visible(error.hint) + "\n";
  return text;
}

}  // namespace cli
