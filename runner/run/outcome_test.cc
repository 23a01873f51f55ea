// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include <catch2/catch.hpp>

namespace {

using report::OutcomeKind;

run::AgentEnd Exited(int status, bool succeeded) {
  run::AgentEnd end;
  end.status = status;
  end.summary.succeeded = succeeded;
  return end;
}

const change::Verdict kAccepted;

}  // namespace

TEST_CASE("DecideOutcome gives the agent's own status up to 63") {
  CHECK(run::DecideOutcome(Exited(0, true), {}, kAccepted).exit_code == 0);
  CHECK(run::DecideOutcome(Exited(37, false), {}, kAccepted).exit_code == 37);
  CHECK(run::DecideOutcome(Exited(63, false), {}, kAccepted).exit_code == 63);
}

TEST_CASE("DecideOutcome gives a status above 63 as 63 and keeps the real one") {
  report::OutcomeRecord outcome = run::DecideOutcome(Exited(127, false), {}, kAccepted);

  CHECK(outcome.exit_code == 63);
  CHECK(outcome.agent_status == 127);
}

TEST_CASE("DecideOutcome says which budget refused the agent its model, whatever its exit status") {
  for (bool succeeded : {true, false}) {
    report::OutcomeRecord outcome =
        run::DecideOutcome(Exited(0, succeeded), {.budget = "cost"}, kAccepted);
    CHECK(outcome.kind == OutcomeKind::kLimit);
    CHECK(outcome.limit == "cost");
    CHECK(outcome.exit_code == 125);
  }
}

TEST_CASE("DecideOutcome names the host that refused the credential, whatever the exit status") {
  run::RunSigns signs;
  signs.refused_by = "api.example.com";
  for (bool succeeded : {true, false}) {
    report::OutcomeRecord outcome = run::DecideOutcome(Exited(0, succeeded), signs, kAccepted);
    CHECK(outcome.kind == OutcomeKind::kCredentialRefused);
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.reason.find("api.example.com") != std::string::npos);
  }
}

TEST_CASE(
    "An agent that its own sandbox blocked succeeds only when it changed something after all") {
  run::AgentEnd end = Exited(0, true);
  end.summary.blocked = "blocked by read-only sandbox";
  run::RunSigns signs;
  CHECK(run::DecideOutcome(end, signs, kAccepted).kind == OutcomeKind::kSuccess);
  signs.nothing_changed = true;
  report::OutcomeRecord outcome = run::DecideOutcome(end, signs, kAccepted);
  CHECK(outcome.kind == OutcomeKind::kAgentFailed);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.reason.find("blocked by read-only sandbox") != std::string::npos);
  end.summary.blocked.clear();
  CHECK(run::DecideOutcome(end, signs, kAccepted).kind == OutcomeKind::kSuccess);
}

TEST_CASE("DecideOutcome does not take an exit status of 0 for success") {
  run::AgentEnd end = Exited(0, false);
  end.summary.reason = "the model refused";

  report::OutcomeRecord outcome = run::DecideOutcome(end, {}, kAccepted);

  CHECK(outcome.kind == OutcomeKind::kAgentFailed);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.reason == "the model refused");
}

TEST_CASE("DecideOutcome refuses a successful agent's changes when a gate does") {
  change::Verdict verdict;
  verdict.accepted = false;

  CHECK(run::DecideOutcome(Exited(0, true), {}, verdict).exit_code == 77);
  CHECK(run::DecideOutcome(Exited(3, false), {}, verdict).exit_code == 3);
}

TEST_CASE("DecideOutcome names the limit that was reached, whatever the agent and the gates say") {
  change::Verdict refused;
  refused.accepted = false;
  run::AgentEnd end = Exited(0, true);
  for (auto [kind, name] :
       {std::pair(sandbox::LimitName::kMemory, "memory"),
        std::pair(sandbox::LimitName::kDisk, "disk"), std::pair(sandbox::LimitName::kPids, "pids"),
        std::pair(sandbox::LimitName::kRecords, "records"),
        std::pair(sandbox::LimitName::kRunnerCpu, "runner-cpu")}) {
    end.kind = kind;
    report::OutcomeRecord outcome = run::DecideOutcome(end, {}, refused);
    CHECK(outcome.kind == OutcomeKind::kLimit);
    CHECK(outcome.limit == name);
    CHECK(outcome.exit_code == 125);
  }
}

TEST_CASE("DecideOutcome does not call a lost sandbox or gateway a failed set-up") {
  run::AgentEnd end;
  end.kind = run::EndKind::kSandboxLost;
  CHECK(run::DecideOutcome(end, {}, kAccepted).kind == OutcomeKind::kSandboxLost);
  end.kind = run::EndKind::kGatewayLost;
  CHECK(run::DecideOutcome(end, {}, kAccepted).kind == OutcomeKind::kGatewayLost);
}

TEST_CASE("DecideOutcome calls a model that stays away temporary") {
  run::AgentEnd end = Exited(1, false);
  end.summary.api_error_status = 529;
  CHECK(run::DecideOutcome(end, {}, kAccepted).exit_code == 75);

  end.summary.api_error_status = 401;
  CHECK(run::DecideOutcome(end, {}, kAccepted).exit_code == 1);
}

TEST_CASE("DecideOutcome has an exit status for every way to be ended") {
  run::AgentEnd end;
  auto code = [&](run::EndCause kind) {
    end.kind = kind;
    return run::DecideOutcome(end, {}, kAccepted).exit_code;
  };
  CHECK(code(sandbox::LimitName::kTimeout) == 124);
  CHECK(code(sandbox::LimitName::kIdle) == 124);
  CHECK(code(sandbox::LimitName::kOutput) == 125);
  CHECK(code(sandbox::LimitName::kMemory) == 125);
  CHECK(code(run::EndKind::kInterrupted) == 130);
  CHECK(code(run::EndKind::kTerminated) == 143);
  CHECK(code(run::EndKind::kGatewayLost) == 74);
}

TEST_CASE("A model that stays overloaded or breaks off is a temporary failure, whoever noticed") {
  run::AgentEnd end = Exited(1, false);
  end.summary.reason = "the agent reports an error: high demand";
  run::RunSigns signs;
  CHECK(run::DecideOutcome(end, signs, kAccepted).exit_code == 1);
  for (int64_t status : {429, 500, 529}) {
    signs.model_status = status;
    report::OutcomeRecord outcome = run::DecideOutcome(end, signs, kAccepted);
    CHECK(outcome.kind == OutcomeKind::kAgentFailed);
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.reason.find(std::to_string(status)) != std::string::npos);
  }
  signs.model_status = 200;
  CHECK(run::DecideOutcome(end, signs, kAccepted).exit_code == 1);
  signs.model_broke_off = true;
  CHECK(run::DecideOutcome(end, signs, kAccepted).exit_code == 75);
  signs.model_status = 400;
  signs.model_broke_off = false;
  report::OutcomeRecord refused = run::DecideOutcome(end, signs, kAccepted);
  CHECK(refused.exit_code == 1);
  CHECK(refused.reason == "the model responded with 400; " + end.summary.reason);
  // An answer that the agent read and understood goes before one that passed by.
  signs.model_status = 529;
  end.summary.api_error_status = 400;
  CHECK(run::DecideOutcome(end, signs, kAccepted).exit_code == 1);
  CHECK(run::DecideOutcome(Exited(0, true), signs, kAccepted).kind == OutcomeKind::kSuccess);
}

TEST_CASE("The agent's own findings fail a run that asks for it, and nothing else does") {
  const auto finding = [](report::Severity severity, report::FindingSource source) {
    report::Finding one;
    one.severity = severity;
    one.source = source;
    return one;
  };
  using report::Severity;
  const auto agent = report::FindingSource::kAgent;
  const std::vector<report::Finding> warning = {finding(Severity::kWarning, agent)};
  const std::vector<report::Finding> both = {finding(Severity::kError, agent), warning[0],
                                             finding(Severity::kNote, agent)};
  const std::vector<report::Finding> gates = {
      finding(Severity::kError, report::FindingSource::kGate)};
  const auto judged = [](const char* fail_on, const std::vector<report::Finding>& findings) {
    const report::OutcomeRecord outcome = run::DecideOutcome(Exited(0, true), {}, kAccepted);
    return run::JudgeFindings(outcome, fail_on, findings);
  };
  CHECK(judged("error", warning).kind == OutcomeKind::kSuccess);
  CHECK(judged("never", both).kind == OutcomeKind::kSuccess);
  CHECK(judged("warning", gates).kind == OutcomeKind::kSuccess);
  CHECK(judged("error", both).kind == OutcomeKind::kFindings);
  CHECK(judged("error", both).exit_code == 79);
  CHECK(judged("error", both).agent_status == 0);
  CHECK(judged("error", both).reason == "the agent found 1 error, and fail_on is error");
  CHECK(judged("warning", both).reason ==
        "the agent found 1 error and 1 warning, and fail_on is warning");
  const report::OutcomeRecord failed = run::DecideOutcome(Exited(1, false), {}, kAccepted);
  CHECK(run::JudgeFindings(failed, "error", both).kind == OutcomeKind::kAgentFailed);
}

TEST_CASE("A model whose name has no address ends the run with its own words") {
  run::AgentEnd end = Exited(137, false);
  end.kind = run::EndKind::kModelUnresolved;
  end.refused_by = "resolving api.exmaple.com: no address";
  report::OutcomeRecord outcome = run::DecideOutcome(end, {}, kAccepted);
  CHECK(outcome.kind == OutcomeKind::kAgentFailed);
  CHECK(outcome.exit_code == 78);
  CHECK(outcome.reason ==
        "the host of the agent's model cannot be found: resolving api.exmaple.com: no address");
}

TEST_CASE("A policy that refuses the agent its model is named in every failure") {
  run::RunSigns signs;
  signs.model_denied = "api.example.com";
  run::AgentEnd late = Exited(137, false);
  late.kind = sandbox::LimitName::kTimeout;
  for (const run::AgentEnd& end : {Exited(1, false), late}) {
    CHECK(run::DecideOutcome(end, signs, kAccepted)
              .reason.ends_with("; the policy refused api.example.com, where its model is"));
  }
  CHECK(run::DecideOutcome(Exited(0, true), signs, kAccepted).reason.empty());
}
