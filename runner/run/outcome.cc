// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include <algorithm>

#include "base/exit_code.h"
#include "report/wording.h"

namespace run {
namespace {

using report::OutcomeKind;
using report::OutcomeRecord;

OutcomeRecord Outcome(OutcomeKind kind, ExitCode code, std::string reason, std::string limit = {}) {
  OutcomeRecord outcome;
  outcome.kind = kind;
  outcome.exit_code = static_cast<int>(code);
  outcome.reason = std::move(reason);
  outcome.limit = std::move(limit);
  return outcome;
}

OutcomeRecord Limit(const std::string& name, std::string reason) {
  return Outcome(OutcomeKind::kLimit, ExitCode::kLimit, std::move(reason), name);
}

OutcomeRecord CredentialRefused(const std::string& host) {
  return Outcome(OutcomeKind::kCredentialRefused, ExitCode::kSetup,
                 host + " rejected the run's credential");
}

// The agent ended by itself and did not do its work.
OutcomeRecord AgentFailed(const AgentEnd& end, const RunSigns& signs) {
  int status = end.status.value_or(0);
  // Not every agent tells what its model responded; the gateway saw it.
  int64_t api = end.summary.api_error_status;
  if (api == 0 && signs.model_status >= 400) api = signs.model_status;
  if (api == 429 || api >= 500) {
    return Outcome(OutcomeKind::kAgentFailed, ExitCode::kTemporary,
                   "the model responded with " + std::to_string(api) + " after retries");
  }
  if (api == 0 && signs.model_broke_off) {
    return Outcome(OutcomeKind::kAgentFailed, ExitCode::kTemporary,
                   "the model's answers broke off");
  }
  int shown = status == 0 ? 1 : std::min(status, static_cast<int>(ExitCode::kAgentStatusMax));
  std::string reason = end.summary.reason.empty()
                           ? "the agent exited with " + std::to_string(status)
                           : end.summary.reason;
  if (api != end.summary.api_error_status) {
    reason = "the model responded with " + std::to_string(api) + "; " + reason;
  }
  return Outcome(OutcomeKind::kAgentFailed, static_cast<ExitCode>(shown), std::move(reason));
}

OutcomeRecord Exited(const AgentEnd& end, const RunSigns& signs, const change::Verdict& verdict) {
  // Some agents end with 0 after being refused by their model.
  if (signs.budget == "host-bytes") {
    return Limit(signs.budget, "a host used up the limit of data to and from each host");
  }
  if (!signs.budget.empty()) {
    return Limit(signs.budget, "the run's budget of " + signs.budget + " is used up");
  }
  if (!signs.refused_by.empty()) return CredentialRefused(signs.refused_by);
  if (!end.summary.succeeded) return AgentFailed(end, signs);
  if (signs.nothing_changed && !end.summary.blocked.empty()) {
    return Outcome(OutcomeKind::kAgentFailed, static_cast<ExitCode>(1),
                   "the agent's own sandbox blocked its work (" + end.summary.blocked +
                       "); this run's sandbox replaces it, so start the agent without one: codex "
                       "exec --dangerously-bypass-approvals-and-sandbox");
  }
  if (!verdict.accepted) {
    return Outcome(OutcomeKind::kRefused, ExitCode::kRefused, "a gate refused the changes");
  }
  return Outcome(OutcomeKind::kSuccess, ExitCode::kOk, "");
}

OutcomeRecord Decide(const AgentEnd& end, const RunSigns& signs, const change::Verdict& verdict) {
  switch (end.kind) {
    case EndKind::kExited:
      return Exited(end, signs, verdict);
    case EndKind::kTimedOut:
      return Outcome(OutcomeKind::kTimedOut, ExitCode::kTimedOut, "the time limit ended the agent");
    case EndKind::kIdle:
      return Outcome(OutcomeKind::kIdle, ExitCode::kTimedOut,
                     "the agent printed nothing for longer than the idle limit");
    case EndKind::kOutputLimit:
      return Limit("output", "the agent wrote more than the output limit");
    case EndKind::kMemoryLimit:
      return Limit("memory", "the agent's processes used more than the memory limit");
    case EndKind::kDiskLimit:
      return Limit("disk", "the writable layers are full");
    case EndKind::kPidsLimit:
      return Limit("pids", "the agent reached the limit of processes and threads");
    case EndKind::kAgentCpuLimit:
      return Limit("agent-cpu", "the agent's processes used more CPU time than the limit");
    case EndKind::kRunnerLimit:
      return Limit("runner-cpu",
                   "the gateway and the supervisor used more CPU time than the limit");
    case EndKind::kRecordsLimit:
      return Limit("records", "OpenShell's records of the sandbox exceed 64 MiB");
    case EndKind::kInterrupted:
      return Outcome(OutcomeKind::kInterrupted, ExitCode::kInterrupted, "interrupted");
    case EndKind::kTerminated:
      return Outcome(OutcomeKind::kTerminated, ExitCode::kTerminated, "terminated");
    case EndKind::kSandboxLost:
      return Outcome(OutcomeKind::kSandboxLost, ExitCode::kIo,
                     "the sandbox was killed from outside");
    case EndKind::kGatewayLost:
      return Outcome(OutcomeKind::kGatewayLost, ExitCode::kIo,
                     "the gateway ended before the agent");
    case EndKind::kCredentialRefused:
      return CredentialRefused(end.refused_by);
    case EndKind::kModelUnresolved:
      return Outcome(OutcomeKind::kAgentFailed, ExitCode::kSetup,
                     "the host of the agent's model cannot be found: " + end.refused_by);
  }
  return Outcome(OutcomeKind::kSetupFailed, ExitCode::kBug, "unknown end");
}

}  // namespace

OutcomeRecord DecideOutcome(const AgentEnd& end, const RunSigns& signs,
                            const change::Verdict& verdict) {
  OutcomeRecord outcome = Decide(end, signs, verdict);
  if (!signs.model_denied.empty() && outcome.kind != OutcomeKind::kSuccess) {
    outcome.reason += "; the policy refused " + signs.model_denied + ", where its model is";
  }
  outcome.agent_status = end.status;
  return outcome;
}

OutcomeRecord JudgeFindings(OutcomeRecord outcome, std::string_view fail_on,
                            const std::vector<report::Finding>& findings) {
  if (outcome.kind != OutcomeKind::kSuccess) return outcome;
  auto count = [&](report::Severity severity) {
    return std::count_if(findings.begin(), findings.end(), [&](const report::Finding& finding) {
      return finding.source == report::FindingSource::kAgent && finding.severity == severity;
    });
  };
  const int64_t errors = count(report::Severity::kError);
  const int64_t warnings = fail_on == "warning" ? count(report::Severity::kWarning) : 0;
  if (errors + warnings == 0 || (fail_on != "error" && fail_on != "warning")) return outcome;
  std::string found = errors > 0 ? report::Plural(errors, "error") : "";
  if (warnings > 0) found += (errors > 0 ? " and " : "") + report::Plural(warnings, "warning");
  outcome.kind = OutcomeKind::kFindings;
  outcome.exit_code = static_cast<int>(ExitCode::kFindings);
  outcome.reason = "the agent found " + found + ", and fail_on is " + std::string(fail_on);
  return outcome;
}

}  // namespace run
