// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace run {

// The report directory of a run that is about to start, and the files in it that grow while it
// runs.
struct ReportDirectory {
  std::string path;  // Canonical.
  Fd events_jsonl;   // events.ocsf.jsonl
  Fd events_log;     // events.log
  Fd agent_jsonl;    // agent.jsonl; stays empty when the agent writes no stream of events.
  Fd agent_log;      // agent.log

  // Makes the directory and empties it of an earlier run's files. What lies there may come from the
  // pull request, so nothing is followed and nothing is overwritten in place: a directory that is a
  // symbolic link is kRefused, a file is removed and made anew.
  static Result<ReportDirectory> Prepare(const std::string& path);
};

}  // namespace run
