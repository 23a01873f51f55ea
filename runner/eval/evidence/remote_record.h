// SPDX-License-Identifier: Apache-2.0
// The record of a cell whose agent ran elsewhere: what it answered, and how that ended.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "eval/grade/verdict.h"

namespace eval {

// The record's file in the cell's directory, in place of a report.
inline constexpr char kRemoteFile[] = "remote.json";

// The channels that only a sandbox has, for people.
inline constexpr char kSandboxChannels[] = "files, commands, network, findings, model, egress";

struct RemoteRecord {
  std::string protocol;
  std::string url;  // Without its query.
  Ending ending = Ending::kNeverRan;
  std::string reason;          // Why the ending is not kEnded.
  std::string answer;          // The agent's words.
  bool whole = false;          // They are all that it said.
  bool tools_reached = false;  // The agent asked the server of the suite's tools for something.
  int64_t ms = 0;              // From the question to the answer.
};

std::string RenderRemoteRecord(const RemoteRecord& record);
// Fails with kInvalid if a member is missing or is not what it should be.
Result<RemoteRecord> ParseRemoteRecord(const std::string& text);

}  // namespace eval
