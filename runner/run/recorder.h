// SPDX-License-Identifier: Apache-2.0
// Collects run.json while the run goes on. Each phase notes its part; a failure reports what was
// noted until then.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caller/program_links.h"
#include "change/gate.h"
#include "codec/data/secret_mask.h"
#include "forge/event.h"
#include "gateway/budget/budget_limits.h"
#include "gateway/egress_proxy.h"
#include "gateway/gateway.h"
#include "report/agent_findings.h"
#include "report/denials.h"
#include "report/model_use.h"
#include "report/record.h"
#include "run/agent_end.h"
#include "run/outcome.h"
#include "run/request.h"
#include "run/trusted/trust.h"
#include "sandbox/sandbox.h"

namespace run {

// Collects the run's record while the run goes on: takes other folders' values, gives report's
// values. The report of a failure has what was noted before it.
class Recorder {
 public:
  explicit Recorder(const Request& request);

  // Notes that the time since the last call (or since the beginning) was spent on `phase`.
  void Phase(const char* phase);
  void Note(const forge::Event& event, const Trust& trust);
  // Notes the commit that the agent works on, if the event does not say it.
  void NoteHead(const std::string& commit);
  void Note(const report::PolicyRecord& policy) { input_.record.policy = policy; }
  void NoteConfig(const std::string& sha256) { input_.record.config_sha256 = sha256; }
  // Notes the names of the credentials that the gateway has.
  void NoteCredentials(std::vector<std::string> names) {
    input_.record.credentials = std::move(names);
  }
  void Note(const report::ImageRecord& image) { input_.record.image = image; }
  void Note(const gateway::TakenIdentity& identity);
  // Called once the request is whole, with what the configuration's task says.
  void NoteTask();
  // Notes the version of the agent's package; it is replaced at the end if the agent reports its
  // own.
  void NoteVersion(const std::string& version) { input_.record.agent.version = version; }
  // Notes what the agent is asked; empty if nothing.
  void NotePrompt(const std::string& prompt) { input_.prompt = prompt; }
  void NoteCommand(const std::vector<std::string>& argv) { input_.record.agent.command = argv; }
  void Note(const std::vector<sandbox::Control>& controls);
  // Notes the proxy that the agent's connections go through.
  void Note(const gateway::EgressProxy& proxy);
  // Notes how connecting programs are identified, and which links of the policy could not be
  // followed.
  void Note(const sandbox::ConnectWatch& connects, const caller::ProgramLinks& links);
  // Notes whether all programs of --record-programs are in the report, once all have ended.
  void NotePrograms(const std::string& report_dir);
  // Notes, once the agent has ended, its figures, and how far limits were used.
  void Note(const AgentEnd& end, sandbox::Sandbox& sandbox);
  // Does the same in a sandbox that is not agentic-ci's own.
  void Note(const AgentEnd& end);
  // Notes, where the size of the sandbox's files is known only later, whether it was the limit.
  void NoteDisk(const AgentEnd& end);
  void Note(report::Finding finding) { input_.record.findings.push_back(std::move(finding)); }
  // A finding that is a note.
  void NoteAbout(const std::string& path, const std::string& rule, const std::string& what);
  // Notes, once the gateway has ended, the processor time of agentic-ci's own processes.
  void Note(const AgentEnd& end, const gateway::Gateway& gateway);
  // Notes that --runner-cpu was spent after the agent's end.
  void NoteRunnerLimit();
  // Notes what models were asked, against the budget's limits.
  void Note(const report::ModelUse& use, const gateway::BudgetLimits& limits);
  // Notes the changes. `prefix` is change::Repository::prefix.
  void Note(const change::ChangeSet& changes, const std::string& prefix, const std::string& merged);
  // Notes the agent's own findings, and which parts of its file are invalid.
  void Note(const report::AgentFindings& findings);
  void Note(const change::Verdict& verdict);
  void Note(const report::DenialList& denials);
  // Notes the agent's own account of its work, from the report directory's files, for the page,
  // which can do without.
  void NoteAccount(const std::string& directory);
  void Note(const report::OutcomeRecord& outcome) { input_.record.outcome = outcome; }
  void Note(const report::CheckRecord& check) { input_.record.checks.push_back(check); }
  // Notes the commit that was checked out, and the tree that the changes make of it
  // (report::ChangesRecord).
  void NoteTree(const std::string& checkout, const std::string& tree) {
    input_.record.changes.checkout = checkout;
    input_.record.changes.tree = tree;
  }
  void NoteApplied() { input_.record.changes.applied = true; }
  // Notes, for each path that `changes` leaves out, that it is `what` and why.
  void NoteLeftOut(const change::ChangeSet& changes, const std::string& rule,
                   const std::string& what, report::Severity severity);
  // Notes the files that git ignores and that were applied.
  void NoteIgnored(const change::ChangeSet& ignored);
  // Notes that it is unknown, or denied, that those who caused this run may start it: the failure
  // that follows is that.
  void NoteUntrusted() { untrusted_ = true; }
  // Notes that the failure that follows is for a budget across runs.
  void NoteOverBudget() { over_budget_ = true; }
  void Note(const report::BudgetRecord& budget) { input_.record.budget = budget; }
  // Notes that the run could not be carried out, or that nothing was to be done.
  void NoteFailure(const Error& error);

  // Returns the secrets that must not be in the record, wherever they came from. It may grow until
  // Finish.
  codec::SecretMask& secrets() { return secrets_; }

  const report::RunRecord& record() const { return input_.record; }
  // Returns AgentEnd::line_times_ms.
  std::vector<int64_t> TakeLineTimes() { return std::move(line_times_ms_); }
  // Returns the whole, with the time of its end.
  const report::ReportInput& Finish();

 private:
  void NoteControl(sandbox::ControlName name, sandbox::ControlState state, std::string note);
  void NoteLimit(sandbox::LimitName name, std::optional<double> bound, std::optional<double> used,
                 const AgentEnd& end);
  void NoteTimes(const AgentEnd& end);
  void NoteSummary(const AgentEnd& end);

  const Request& request_;
  report::ReportInput input_;
  codec::SecretMask secrets_;
  bool untrusted_ = false;
  bool over_budget_ = false;
  std::vector<int64_t> line_times_ms_;
  Deadline::Clock::time_point phase_began_;
};

// Returns what is said about the conflict: "not part of the patch: changed in the checkout ...".
// `report_dir` is "" or ends with a `/`.
std::string DescribeConflict(const change::Conflict& conflict, const std::string& report_dir = "");
// Returns the agent's versions of the files that it did not change alone, and did not remove.
std::vector<report::ConflictFile> ConflictFiles(const change::ChangeSet& changes);

}  // namespace run
