// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <chrono>

#include "base/ascii.h"
#include "base/deadline.h"
#include "base/sys.h"

namespace logging {
namespace {

using std::chrono::seconds;

constexpr seconds kReaderPatience{2};

bool g_quiet = false;
bool g_stalled = false;  // The reader of standard error did not take the last line.

// Control characters, those of Unicode (U+0080 to U+009F) among them, become question marks.
void AddHarmless(std::string_view text, std::string* line) {
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    const bool second = c == '\xc2' && next >= 0x80 && next < 0xa0;
    at += second ? 1 : 0;
    // "##[command]" counts anywhere in a line of a CI's log (actions/runner, ActionCommand.cs).
    if (c == '#' && line->back() == '#') *line += ' ';
    *line += second || ascii::IsControl(c) ? '?' : c;
  }
}

void Write(std::string_view level, std::string_view message, Facts facts) {
  std::string line = "agentic-ci: ";
  line.append(level).append(": ");
  AddHarmless(message, &line);
  for (const auto& [key, value] : facts) {
    line.append(" ").append(key).append("=");
    AddHarmless(value, &line);
  }
  line += '\n';
  // A reader that has stopped reading is waited for once, not for every line.
  Deadline patience = Deadline::After(g_stalled ? seconds(0) : kReaderPatience);
  Result<size_t> written = sys::WriteWithin(STDERR_FILENO, line, patience);
  g_stalled = !written.ok() || written.value() < line.size();
}

}  // namespace

void Info(std::string_view message, Facts facts) {
  if (!g_quiet) Write("info", message, facts);
}
void Warn(std::string_view message, Facts facts) { Write("warn", message, facts); }
void SetQuiet(bool quiet) { g_quiet = quiet; }

}  // namespace logging
