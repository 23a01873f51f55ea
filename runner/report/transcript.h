// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/record.h"

namespace report {

struct Transcript {
  std::vector<TranscriptStep>
      steps;            // In order; at most 1000, of 8 KiB and a result of 8 KiB each.
  int64_t dropped = 0;  // Steps beyond the bound.
};

// Reads what the agent said and did from `directory`/agent.jsonl: the streams of Claude Code,
// Codex, Gemini CLI, opencode and pi, distinguished by the form of each line. Any other line is
// passed over: the agent wrote them all, and nothing is decided by them. A missing file is an empty
// transcript; at most 64 MiB are read.
Result<Transcript> ReadTranscript(const std::string& directory);

// Returns the last 128 KiB of `directory`/agent.log, from the beginning of a line; `cut` says
// whether there was more. No such file is an empty log.
Result<std::string> ReadLogEnd(const std::string& directory, bool* cut);

}  // namespace report
