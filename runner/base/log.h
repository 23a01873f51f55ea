// SPDX-License-Identifier: Apache-2.0
// Log lines for a person watching: one line each, on stderr. The records of a run are separate.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace logging {

using Facts = std::initializer_list<std::pair<std::string_view, std::string>>;

// Logs a line such as "agentic-ci: info: image verified digest=sha256:... bytes=1048576". `message`
// is a fixed lower-case phrase; variable parts go into `facts`. Control characters are replaced.
void Info(std::string_view message, Facts facts = {});
// Logs that something is weaker than usual because it was requested, with a reason.
void Warn(std::string_view message, Facts facts = {});

// Silences Info (not Warn) for the life of the process: `--quiet`, `--json`.
void SetQuiet(bool quiet);

}  // namespace logging
