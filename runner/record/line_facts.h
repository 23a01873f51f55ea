// SPDX-License-Identifier: Apache-2.0
// What is needed of a recorded line to pass it on to other systems. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace record {

struct LineFacts {
  int64_t time_ms = 0;
  int64_t duration_ms = 0;  // Of a model's answer.
  int severity = 1;         // OCSF's, from 0 to 6.
  std::string class_name;   // "HTTP Activity"
  std::string decision;     // "allowed", "denied", ...; empty for what is not a decision.
  std::string scheme;       // Of a request.
};

// Returns nullopt for a line that is not one JSON object, or beyond the bounds of a record.
std::optional<LineFacts> ReadLineFacts(std::string_view line);

// Returns the line without the members that are not OCSF's own, and without its place in a chain of
// records, which was its place as it was: shorter. Nullopt as above.
std::optional<std::string> WithoutOwnMembers(std::string_view line);

}  // namespace record
