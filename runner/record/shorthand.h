// SPDX-License-Identifier: Apache-2.0
// OpenShell's one line for people. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "record/event.h"

namespace record {

// Renders an event: "NET:REFUSE [MED] DENIED /usr/bin/node(7) -> example.com:443 [policy:-
// engine:opa] [reason:...]". One is written for every request: it is appended piece by piece to
// where it will be kept.
void AppendShorthand(const Event& event, std::string& out);
std::string RenderShorthand(const Event& event);
std::string RenderShorthand(const Notice& notice);

// Renders a time: "2026-08-21T10:00:00.123Z" for milliseconds since 1970.
std::string RenderTime(int64_t time_ms);

}  // namespace record
