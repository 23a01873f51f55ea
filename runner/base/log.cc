// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include "base/ascii.h"

namespace logging {
namespace {

bool g_quiet = false;

void Write(std::string_view level, std::string_view message, Facts facts) {
  std::string line = "agentic-ci: ";
  line.append(level).append(": ").append(message);
  for (const auto& [key, value] : facts) {
    line.append(" ").append(key).append("=");
    for (char c : value) {
      // "##[command]" counts anywhere in a line of a CI's log (actions/runner, ActionCommand.cs).
      if (c == '#' && line.back() == '#') line += ' ';
      line += ascii::IsControl(c) ? '?' : c;
    }
  }
  line += '\n';
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void Info(std::string_view message, Facts facts) {
  if (!g_quiet) Write("info", message, facts);
}
void Warn(std::string_view message, Facts facts) { Write("warn", message, facts); }
void SetQuiet(bool quiet) { g_quiet = quiet; }

}  // namespace logging
