// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include <algorithm>

#include "base/exit_code.h"
#include "report/wording.h"

namespace run {
namespace {

using report::OutcomeKind;
using report::OutcomeRecord;
using sandbox::LimitName;

OutcomeRecord Outcome(OutcomeKind kind, ExitCode code, std::string reason, std::string limit = {}) {
  OutcomeRecord outcome;
  outcome.kind = kind;
  outcome.exit_code = static_cast<int>(code);
  outcome.reason = std::move(reason);
  outcome.limit = std::move(limit);
  return outcome;
}

OutcomeRecord Reached(LimitName name) {
  const sandbox::LimitRow& row = RowOf(name);
  if (name == LimitName::kTimeout || name == LimitName::kIdle) {
    return Outcome(name == LimitName::kIdle ? OutcomeKind::kIdle : OutcomeKind::kTimedOut,
                   ExitCode::kTimedOut, std::string(row.reached));
  }
  return Outcome(OutcomeKind::kLimit, ExitCode::kLimit, std::string(row.reached),
                 std::string(row.record));
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
  if (const sandbox::LimitRow* budget = FindLimit(signs.budget, &sandbox::LimitRow::record)) {
    return Reached(budget->name);
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
  switch (end.kind.kind) {
    case EndKind::kExited:
      return Exited(end, signs, verdict);
    case EndKind::kLimit:
      return Reached(end.kind.limit);
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
