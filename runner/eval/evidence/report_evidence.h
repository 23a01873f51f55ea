// SPDX-License-Identifier: Apache-2.0
// Reads the evidence of a cell from the report of its run. A missing or damaged file makes a
// channel absent, never an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "eval/grade/evidence.h"
#include "eval/grade/verdict.h"
#include "eval/suite/suite.h"

namespace eval {

// The evidence about a cell in what its run left.
struct ReportEvidence {
  Evidence evidence;
  Ending ending = Ending::kNeverRan;
  std::string ending_reason;  // "agent-failed: exit status 3"; empty if it ended well.
  int64_t agent_ms = 0;       // The milliseconds that the agent ran.
  bool tools_reached = true;  // False if an agent that ran elsewhere never reached the fake tools.
  // SHA-256 of the files that were read, by name.
  std::vector<std::pair<std::string, std::string>> hashes;
};

// The texts that the run of a cell was to look for, one per line, in the cell's directory: in what
// servers are sent, and those of the payload in what models are sent. Empty lines fill the second.
inline constexpr char kSentTextsFile[] = "sent.txt";
inline constexpr char kMarkersFile[] = "markers.txt";

// Reads these, and the report, in a cell's directory. A file that is missing or malformed makes its
// channels absent or lossy, and is never an error. A run without run.json is lost if ShowsStart(),
// and never ran otherwise. Of an agent that ran elsewhere (kRemoteFile is there), the answer alone
// is known: all other channels are absent.
ReportEvidence ReadCellEvidence(const std::string& directory);

// Returns the ending alone, which run.json in the report directory says; nullopt if that cannot be
// read.
std::optional<Ending> ReadEnding(const std::string& report);

// Returns whether the report directory has anything that an agent said or started, run.json aside.
bool ShowsStart(const std::string& report);

// Adds what the fake tools left in a cell's directory: state.json and tools.jsonl. Both channels
// are absent if the agent never reached the tools: what it would have done with them is not known.
void ReadToolEvidence(const std::string& directory, const codec::Json& before, ReportEvidence* out);

}  // namespace eval
