// SPDX-License-Identifier: Apache-2.0
#include "run/checks.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/exit_code.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/tree.h"
#include "change/apply.h"
#include "change/gate.h"
#include "codec/text/neutral.h"
#include "report/write.h"
#include "run/shown/left_files.h"
#include "sandbox/limit/usage.h"
#include "sandbox/scratch_directory.h"
#include "sandbox/tree_copy.h"

namespace run {
namespace {

constexpr char kCopy[] = "checkout";
constexpr size_t kShownBytesMax = 200;

// Adds to `plan` the files of the copy that may hold credentials which steps left while the agent
// worked. They are looked for in both trees: what is named by an absolute path lies in the
// checkout.
Status WithholdLate(const Checkout& copy, const std::string& report_dir, Plan* plan) {
  std::set<std::string> known;
  for (const auto& file : plan->replaced) known.insert(file.path);
  for (const auto& file : plan->git.in_checkout) known.insert(file.path);
  std::set<std::string> paths;
  std::vector<sandbox::WorkspaceFile> found;
  for (const std::string& top : {copy.path, plan->checkout.path}) {
    LeftFiles left = TRY(FindLeftFiles(top, report_dir));
    GitFiles git = TRY(FindGitFiles(top, left.repositories));
    paths.insert(left.credentials.begin(), left.credentials.end());
    paths.insert(git.included.begin(), git.included.end());
    found.insert(found.end(), git.in_checkout.begin(), git.in_checkout.end());
    found.insert(found.end(), git.nested.begin(), git.nested.end());
    if (top == copy.path) continue;
    plan->git.outside = std::move(git.outside);
    std::move(git.included_outside.begin(), git.included_outside.end(),
              std::back_inserter(plan->git.included_outside));
  }
  const std::vector<sandbox::WorkspaceFile> left =
      WithholdFiles(copy.git(), copy.path, {paths.begin(), paths.end()});
  found.insert(found.begin(), left.begin(), left.end());
  for (sandbox::WorkspaceFile& file : found) {
    if (!sys::Exists(copy.path + "/" + file.path) || !known.insert(file.path).second) continue;
    plan->notes.push_back(file.path + ": not given to the checks as it is: it appeared while the " +
                          "agent worked, and may hold credentials");
    plan->replaced.push_back(std::move(file));
  }
  return Ok();
}

// The agent's checkout as it was, with the patch: all of the repository, since checks may need more
// than the directory that the run is about. Takes late credentials away from `plan`.
Result<Checkout> PatchedCopy(const std::string& scratch, const std::string& report_dir,
                             int64_t disk_bytes, const change::ChangeSet& changes, Plan* plan) {
  const Checkout& checkout = plan->checkout;
  const std::string& top = checkout.top();
  const std::string copy = scratch + "/" + kCopy;
  TRY(sys::MakeDirectories(copy));
  Fd from = TRY(sys::Open(top, O_RDONLY | O_DIRECTORY));
  Fd to = TRY(sys::Open(copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  sandbox::CopyLimits limits{disk_bytes, static_cast<int64_t>(sandbox::InodesOf(disk_bytes))};
  Result<sandbox::CopySum> copied =
      sandbox::CopyTree(from.get(), to.get(), limits, std::nullopt, sandbox::LogCopying());
  if (!copied.ok()) {
    Error error = std::move(copied).error();
    error.what = "copying the checkout: " + error.what;
    error.hint = "--disk SIZE, as large as the checkout, or TMPDIR=DIRECTORY with room for it";
    return error;
  }
  // The report is about the agent's run: it is not part of what is checked.
  if (report_dir.starts_with(top + "/")) {
    const std::string below = report_dir.substr(top.size() + 1);
    if (sys::Exists(copy + "/" + below)) TRY(sys::RemoveTree(to.get(), below));
  }
  Checkout patched;
  patched.path = copy + checkout.path.substr(top.size());
  patched.shown_at = checkout.path;  // Programs built or installed there know it by that path.
  if (checkout.git() != nullptr) patched.repository = TRY(change::Repository::Open(patched.path));
  TRY(WithholdLate(patched, report_dir, plan));
  TRY(change::ApplyPatch(patched.path, patched.git(), changes).Context("applying the patch"));
  return patched;
}

// The run's own request, for a shell instead of the agent.
Request RequestFor(const Request& request, const std::string& script) {
  Request check = request;
  check.agent = "command";
  check.model.clear();
  check.prompt.clear();
  check.prompt_file.clear();
  check.providers.clear();
  check.secrets.clear();
  check.command = {"sh", "-c", script};
  check.policy_file.clear();  // SIGUSR1 reads the agent's policy again, not the checks'.
  check.apply = false;
  return check;
}

// Leaves nothing of the agent's in the plan but the checkout's surroundings.
void LeaveAgentOut(Plan* plan) {
  RunCredentials none;
  none.files = std::move(plan->credentials.files);  // They stay hidden.
  plan->credentials = std::move(none);
  plan->described.reset();
  if (!plan->check_policy) return;
  plan->policy = *std::move(plan->check_policy);
  plan->learn.reset();  // Refusals would be learned for the agent's policy.
}

std::string ReasonOf(const AgentEnd& end, const report::OutcomeRecord& outcome) {
  if (outcome.kind == report::OutcomeKind::kSuccess) return {};
  if (end.kind == EndKind::kExited && outcome.kind == report::OutcomeKind::kAgentFailed) {
    return "it exited with " + std::to_string(end.status.value_or(0));
  }
  std::string reason = "it ended with " + report::Render(outcome.kind);
  return outcome.limit.empty() ? reason : reason + " (" + outcome.limit + ")";
}

bool Stopped(const report::OutcomeRecord& outcome) {
  return outcome.kind == report::OutcomeKind::kInterrupted ||
         outcome.kind == report::OutcomeKind::kTerminated;
}

report::CheckRecord RecordOf(const std::string& script, const AgentEnd& end,
                             const report::OutcomeRecord& outcome, const std::string& report) {
  report::CheckRecord record;
  record.command = script;
  record.outcome = outcome.kind;
  record.status = end.status;
  record.reason = ReasonOf(end, outcome);
  record.ms = end.wall_ms;
  record.report = report;
  if (outcome.kind != report::OutcomeKind::kSuccess) record.output = end.tail;
  return record;
}

}  // namespace

Result<report::OutcomeRecord> RunChecks(const Request& request, Plan plan,
                                        const ReportDirectory& place,
                                        const change::ChangeSet& changes, Recorder& recorder,
                                        const CheckRun& run) {
  sandbox::ScratchDirectory scratch =
      TRY(sandbox::ScratchDirectory::Make(sandbox::ReadHost(plan.checkout.path).scratch_places,
                                          sandbox::ScratchDirectory::Use::kFiles));
  plan.checkout = TRY(PatchedCopy(scratch.path(), place.path, request.disk_bytes, changes, &plan));
  LeaveAgentOut(&plan);
  report::OutcomeRecord whole;
  whole.kind = report::OutcomeKind::kSuccess;
  whole.exit_code = static_cast<int>(ExitCode::kOk);
  const TaskChecks checks = plan.checks;
  for (size_t i = 0; i < checks.scripts.size(); ++i) {
    const std::string& script = checks.scripts[i];
    const std::string shown = codec::NeutralLine(script, kShownBytesMax);
    const std::string below = "checks/" + std::to_string(i + 1);
    Request asked = RequestFor(request, script);
    if (plan.check_timeout_s > 0) asked.timeout_s = plan.check_timeout_s;
    asked.report_dir = place.path + "/" + below;
    plan.program = TRY(FindAgent(nullptr, asked, plan.in_image()));
    agent::AgentRequest wanted;
    wanted.command = asked.command;
    plan.agent = TRY(agent::PlanCommand(wanted));
    ReportDirectory directory = TRY(place.PrepareBelow(below).Context("the report of a check"));
    Recorder own(asked);
    own.Note(plan.policy.record);
    own.NoteCommand(plan.agent.argv);
    logging::Info("check started", {{"command", shown}});
    CheckEnd ended = TRY(run(asked, plan, directory, own).Context("the check '" + shown + "'"));
    report::OutcomeRecord outcome = DecideOutcome(ended.end, ended.signs, {});
    own.Note(outcome);
    TRY(report::WriteReport(directory.at(), own.Finish()).Context("writing a check's report"));
    report::CheckRecord record = RecordOf(script, ended.end, outcome, below);
    logging::Info("check ended", {{"command", shown}, {"outcome", report::Render(outcome.kind)}});
    recorder.Note(record);
    if (Stopped(outcome)) return outcome;
    if (outcome.kind == report::OutcomeKind::kSuccess) continue;
    std::string what = "the check '" + shown + "' did not pass: " + record.reason;
    change::Verdict verdict;
    verdict.findings.push_back({"check", change::Severity::kError, "", 0, what});
    recorder.Note(verdict);
    if (whole.kind != report::OutcomeKind::kSuccess) continue;
    whole.kind = report::OutcomeKind::kRefused;
    whole.exit_code = static_cast<int>(ExitCode::kRefused);
    whole.reason = std::move(what);
  }
  return whole;
}

}  // namespace run
