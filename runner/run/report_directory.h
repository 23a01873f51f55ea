// SPDX-License-Identifier: Apache-2.0
// Prepares the report directory before a run, moves an earlier report aside, and holds the
// descriptors that are written through.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace run {

// The directory in a report directory that holds the last run's report while this run has not
// started, and after it has failed to.
inline constexpr char kEarlierReport[] = "earlier";
// The log of a gateway that a place started for the run.
inline constexpr char kGatewayLog[] = "gateway.log";

// The report directory of a run that is about to start, and the files in it that grow while it
// runs. What is written or read there goes by its descriptor: another may have its name by then.
struct ReportDirectory {
  std::string path;  // Canonical; to be shown.
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
  // is writing its report there; likewise if other users could put another directory in its place
  // (OpenReportPlace()). Every error is an ErrorKind::kReportPlace.
  static Result<ReportDirectory> Prepare(const std::string& path, const std::string& workdir = ".");
  // Does the same for a directory in this one.
  Result<ReportDirectory> PrepareBelow(const std::string& below) const;

  // Returns a path that leads through the descriptor, whatever has the directory's name.
  std::string at() const { return "/proc/self/fd/" + std::to_string(lock.get()); }

  // Removes the earlier report: the agent has started, and there will be another.
  void Start();
  bool started() const { return started_; }
  // Returns whether an earlier report is set aside, and this run has not started.
  bool has_earlier() const { return has_earlier_ && !started_; }
  // Puts it back in place of what this run has written. Requires has_earlier().
  Status Restore();

 private:
  static Result<ReportDirectory> Open(const std::string& path, const std::string& workdir);
  static Result<ReportDirectory> PrepareIn(Fd fd, const std::string& path, std::string real);

  bool has_earlier_ = false;
  bool started_ = false;
};

// Makes the directory, in which report directories are to be, and opens it. Fails with kRefused if
// users other than root and this one own a directory that leads to it, or all may write in one
// without the sticky bit: they could put another in its place. Those above a directory that is this
// user's alone do not matter; nor do any where the directory is in the job's workspace, or in a
// checkout of this user's or around `workdir`.
Result<Fd> OpenReportPlace(const std::string& path, const std::string& workdir = ".");

// Removes the directory `name` of `place` if it holds a report and nothing else, or nothing.
void RemoveReport(int place, const std::string& name);

// Returns whether this is a job of continuous integration, whose later steps take what is in the
// report directory for this run's.
bool IsInCi();

// Appends `suffix` to the name of what Prepare() refused at `path`, if that lies beneath the top of
// a checkout, where a commit can have put it: of the directory, or of the first link on the way to
// it. Returns its new path; empty if nothing is there or another run writes to it.
Result<std::string> SetReportAside(const std::string& path, const std::string& suffix);

}  // namespace run
