// SPDX-License-Identifier: Apache-2.0
// Collects the results of a run when its agent has ended, judges them and writes the report.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "change/capture.h"
#include "change/gate.h"
#include "report/terminal/live_view.h"
#include "run/outcome.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "sandbox/sandbox.h"

namespace run {

// Fails with kUnsupported unless every control that the configuration requires (`names`) is
// enforced, not emulated.
Status CheckRequired(const std::vector<sandbox::ControlName>& names,
                     const std::vector<sandbox::Control>& controls);

// Returns what the agent changed; notes that and the findings that the agent reported.
Result<change::ChangeSet> CollectChanges(const change::ChangedTree& tree, const Plan& plan,
                                         Recorder& recorder);

// The results of a run.
struct Collected {
  change::ChangeSet changes;
  change::ChangeSet ignored;  // Accepted; empty where files that git ignores are not asked for.
  bool applies = false;       // They go to the checkout.
};

// Returns the files that git ignores and the agent made or changed, but for those that the gates
// refuse, which are noted. `changes` is what is applied before them.
Result<change::ChangeSet> CollectIgnored(change::ChangedTree tree, const change::ChangeSet& changes,
                                         const Plan& plan, Recorder& recorder);

// Writes the report's files.jsonl: all that the agent left in its tree, with its bytes. A content
// with a secret of the run is not written.
Status RecordFiles(change::ChangedTree tree, const Plan& plan, const ReportDirectory& directory,
                   const codec::SecretMask& secrets);

// Returns the trusted commit if it is one of `commits` and was not in the checkout's history
// before: the agent merged it. Empty otherwise; an older commit may have what the base branch has
// mended.
std::string ChooseMerged(const Plan& plan, const std::vector<std::string>& commits);

// Returns the bounds of this run's gates for `changes`.
change::GateLimits GatesOf(const Plan& plan, const change::ChangeSet& changes);

// Decides how a run ended whose agent ended as `end`, by the run's gates and by `signs`; notes what
// the gates said.
report::OutcomeRecord JudgeRun(const Plan& plan, const AgentEnd& end, RunSigns signs,
                               const change::ChangeSet& changes, Recorder& recorder);

// Notes the outcome, for which the findings count as the request says. If it is a success, applies
// what was `collected`, if that is asked for, to `checkout`, which is a repository's if `in_git`,
// and notes that.
Status FinishRun(report::OutcomeRecord outcome, const Request& request, const Collected& collected,
                 const std::string& checkout, bool in_git, Recorder& recorder);

report::TerminalStyle StyleOf(const Request& request);

// Writes the report of a run that was carried out, or was not (`carried`), and gives the command
// line's exit status. Outside of CI, a run that has not started leaves an earlier run's report. The
// Error is that of `carried`, or that no report could be written.
Result<int> Conclude(Status carried, const Request& request, ReportDirectory& directory,
                     Recorder& recorder);

}  // namespace run
