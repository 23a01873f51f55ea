// SPDX-License-Identifier: Apache-2.0
// Functions that the dialects of agents that write JSON lines share: reading an event with bounds,
// and the log entries of texts and tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/dialect.h"
#include "agent/summary.h"
#include "codec/data/json.h"

namespace agent {

inline constexpr size_t kResultBytesMax = size_t{64} << 10;
inline constexpr const char* kNoResult = "the agent ended without a result";
inline constexpr int64_t kCountMax = int64_t{1} << 50;  // An agent's figures: sums do not overflow.

// Returns the object in one line; nullopt for a blank line. A line that is not an object, such as a
// warning of the runtime or a stack trace, is logged as it stands.
std::optional<codec::Json> ParseEvent(std::string_view line, Entries* entries);

// Returns a count between 0 and kCountMax; 0 if it is missing or something else.
int64_t CountAt(const codec::Json& json, std::string_view name);
// Returns the member when it is an object, or an empty object.
const codec::Json& ObjectAt(const codec::Json& json, std::string_view name);
// Returns the items of a member that is an array; otherwise none.
const codec::Json::Array& ItemsAt(const codec::Json& json, std::string_view name);
Tokens& operator+=(Tokens& sum, const Tokens& more);
// Returns the tokens by an API whose input includes what came from a cache.
Tokens WithoutCached(int64_t input, int64_t output, int64_t cached);
// Returns US dollars from 0 to a billion; nullopt if it is not a number.
std::optional<double> DollarsAt(const codec::Json& json, std::string_view name);

// Returns, as in "Bash npm test", the tool and the one argument that tells a reader most; each cut.
std::string DescribeTool(const std::string& name, const codec::Json* input);
// Appends one entry per line of a text, for the first few.
void AppendLines(std::string_view text, const std::string& indent, Entries* entries);
// Does the same with what the model thought.
void AppendThought(std::string_view text, Entries* entries);
void AppendTool(const std::string& name, const codec::Json* input, const std::string& indent,
                Entries* entries);
void AppendFailure(std::string_view text, Entries* entries);
// Returns the last entry: "done after 2 turns, 1 tool call, $0.0224".
std::string EndEntry(const AgentSummary& summary, bool failed);

// Returns the HTTP status that an agent's error message has: `"code":400`, "status 401", "(HTTP
// 429)", "500 ..." at its beginning; 0 if it has none.
int64_t StatusIn(std::string_view message);
// Returns why a run failed whose model, or whose agent, reports an error; `status` is as StatusIn
// gives it.
std::string DescribeModelError(int64_t status, std::string_view message);
// Says in `summary` whether the run succeeded, and why not: `failed` is whether the agent reports
// that it did, `error` the last error it reported.
void Conclude(bool failed, const std::string& error, int exit_status, AgentSummary* summary);

}  // namespace agent
