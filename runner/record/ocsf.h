// SPDX-License-Identifier: Apache-2.0
// Records as OCSF 1.9.0 JSON, the form that is the truth: rendered and parsed here alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "record/event.h"

namespace record {

// Renders one JSON object without a newline. `unmapped` repeats what a denied attempt needs to be
// turned into a policy line: host, port, method, path, protocol, operations, binary, decision.
void AppendOcsf(const Event& event, int64_t time_ms, std::string& out);
std::string RenderOcsf(const Event& event, int64_t time_ms);
// The `counts` and `context` are in `unmapped`.
std::string RenderOcsf(const Notice& notice, int64_t time_ms);
// Renders the member that says which sandbox a record is about, as the device's container: `uid`
// tells those of one host apart (run.json has it in `isolation`).
std::string RenderSandbox(std::string_view uid);
// Adds a rendered member to a rendered object that has others.
void AddMember(std::string_view member, std::string& json);
// Renders what is needed of a denial that is kept over several runs, with its `count`.
std::string RenderDenial(const Event& denied);

// Nothing: an object of another kind.
using Record = std::variant<std::monostate, Event, Notice>;

// Parses a line, whatever shaped it: texts are neither bounded nor made harmless. Not all that is
// rendered comes back, but what a reader here asks for. Returns nullopt for what is not a JSON
// object, or beyond the bounds of one.
std::optional<Record> ParseOcsf(std::string_view line);

// Returns whether a line may be a notice, without parsing it: most lines are not.
bool MayBeNotice(std::string_view line);
// Returns the part of a line about something allowed that is equal where the decision, the request
// and the program are, without parsing it; nullopt for any other line.
std::optional<std::string_view> FindAllowed(std::string_view line);

}  // namespace record
