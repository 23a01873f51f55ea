// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/grade/evidence.h"
#include "eval/grade/verdict.h"
#include "eval/suite/suite.h"

namespace eval {

// The evidence about a cell in the report of its run.
struct ReportEvidence {
  Evidence evidence;
  Ending ending = Ending::kNeverRan;
  std::string ending_reason;  // "agent-failed: exit status 3"; empty if it ended well.
  int64_t agent_ms = 0;       // The milliseconds that the agent ran.
  // SHA-256 of the files that were read, by name.
  std::vector<std::pair<std::string, std::string>> hashes;
};

// Reads a report directory. `markers` are texts that the run watched for. A file that is missing or
// malformed makes its channels absent or lossy, and is never an error; a run without run.json never
// ran.
ReportEvidence ReadReportEvidence(const std::string& directory,
                                  const std::vector<std::string>& markers);

// Returns the ending alone, which run.json says.
Ending ReadEnding(const std::string& directory);

// The texts that the run of the cell in `directory` was to look for in what servers are sent.
inline constexpr char kSentTextsFile[] = "sent.txt";
void ReadWatchedTexts(const std::string& directory, Evidence* evidence);

// Does the same for what the fake tools left in `directory`: state.json and tools.jsonl.
void ReadToolEvidence(const std::string& directory, const codec::Json& before, Evidence* evidence);

}  // namespace eval
