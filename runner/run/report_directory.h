// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace run {

// The directory in a report directory that holds the last run's report while this run has not
// started, and after it has failed to.
inline constexpr char kEarlierReport[] = "earlier";

// The report directory of a run that is about to start, and the files in it that grow while it
// runs.
struct ReportDirectory {
  std::string path;  // Canonical.
  Fd events_jsonl;   // events.ocsf.jsonl
  Fd events_log;     // events.log
  Fd agent_jsonl;    // agent.jsonl; stays empty when the agent writes no stream of events.
  Fd agent_log;      // agent.log
  Fd lock;           // The directory, locked: no other run writes there meanwhile.

  // Makes the directory, which git then ignores, and moves the report of an earlier run whose agent
  // started to kEarlierReport, or removes another; nothing is overwritten in place. Files there
  // may come from the pull request or belong to another program, so it fails with kRefused and
  // leaves everything as it is if a symbolic link leads to the directory or stands in it, if `path`
  // is a file, if one of the names below is taken by what no run has written, and while another run
  // is writing its report there.
  static Result<ReportDirectory> Prepare(const std::string& path);

  // Removes the earlier report: the agent has started, and there will be another.
  void Start();
  // Returns whether an earlier report is set aside, and this run has not started.
  bool has_earlier() const { return has_earlier_ && !started_; }
  // Puts it back in place of what this run has written. Requires has_earlier().
  Status Restore();

 private:
  bool has_earlier_ = false;
  bool started_ = false;
};

// Returns whether this is a job of continuous integration, whose later steps take what is in the
// report directory for this run's.
bool IsInCi();

// Appends `suffix` to the name of what Prepare() refused at `path`, if that lies beneath the top of
// a checkout, where a commit can have put it: of the directory, or of the first link on the way to
// it. Returns its new path; empty if nothing is there or another run writes to it.
Result<std::string> SetReportAside(const std::string& path, const std::string& suffix);

}  // namespace run
