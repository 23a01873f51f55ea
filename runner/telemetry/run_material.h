// SPDX-License-Identifier: Apache-2.0
// What telemetry is made of: a finished run's record, and what its report directory says of when
// things happened. The agent shaped much of it; all of it is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/ocsf.h"
#include "report/event_lines.h"
#include "report/record.h"

namespace telemetry {

// A run that has ended, and whose report is written.
struct FinishedRun {
  const report::RunRecord& record;
  std::string directory;  // The report's; empty if nothing of the run but the record is there.
  // When each line of agent.jsonl came, in order: without it, turns and tool calls have no times.
  // May be shorter than the file.
  std::vector<int64_t> line_times_ms;
  // The chain of records (record/integrity.h) of which a signed statement has the head; empty if
  // there is none.
  std::string chain = {};
};

// One line of events.ocsf.jsonl.
struct RunEvent {
  int64_t time_ms = 0;
  int64_t duration_ms = 0;  // Of a model's answer.
  int severity = 1;         // OCSF's severity_id.
  std::string class_name;   // "http_activity": OCSF's, in lower case with underscores.
  std::string decision;     // "allowed", "denied", ...; empty for what is not a decision.
  std::string scheme;       // Of a request.
  record::Record what;
  std::string line;
  size_t check = 0;  // Which of the run's checks it is of, from 1; 0 for the agent's.
};

struct ToolCall {
  std::string name;
  std::string arguments;  // As the transcript has them.
  std::string result;
  bool failed = false;
  bool nested = false;
  int64_t start_ms = 0;
  int64_t end_ms = 0;
  size_t turn = 0;  // The index of its turn.
};

// A turn of the agent: from the results of the turn before to the results of its own tool calls.
struct Turn {
  int64_t start_ms = 0;
  int64_t end_ms = 0;
};

// A part of the run's time: RunRecord::phases_ms, one after the other from its start.
struct PhaseTime {
  std::string name;
  int64_t start_ms = 0;
  int64_t end_ms = 0;
};

struct RunMaterial {
  const report::RunRecord& record;
  std::vector<PhaseTime> phases;
  std::vector<RunEvent> events;
  std::vector<report::StartedProgram> programs;
  std::vector<Turn> turns;
  std::vector<ToolCall> tools;
  int64_t dropped = 0;  // Events, programs and steps beyond the bounds, or that cannot be read.

  // Returns the phase of that name; nullptr if the run did not get there.
  const PhaseTime* FindPhase(std::string_view name) const;
};

// Bounds on what is exported of a run. Of events, half of the room is for what was not allowed.
struct MaterialBounds {
  size_t events_max = 4000;
  size_t event_bytes_max = size_t{8} << 20;
  size_t programs_max = 2000;
};

// Calls `take` for each event of the run and then of its checks, in order: `line` is empty for one
// that is longer than any record. Reads at most 64 MiB of each file.
Status ForEachEventOf(const FinishedRun& run,
                      const std::function<void(std::string_view line, size_t check)>& take);

// Reads the report. What cannot be read is left out.
RunMaterial ReadMaterial(const FinishedRun& run, const MaterialBounds& bounds = {});

}  // namespace telemetry
