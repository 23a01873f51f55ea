// SPDX-License-Identifier: Apache-2.0
// One run from event to report, wherever its agent runs. Read Carry() as the table of contents of
// the product.
#include "run/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "attest/signer.h"
#include "attest/statement.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"
#include "policy/model/host_pattern.h"
#include "report/denials.h"
#include "report/model_use.h"
#include "report/read.h"
#include "report/write.h"
#include "run/checks.h"
#include "run/collect.h"
#include "run/enclosure.h"
#include "run/environment.h"
#include "run/host_proxy.h"
#include "run/model_access.h"
#include "run/outcome.h"
#include "run/policy_source.h"
#include "run/signal_watch.h"
#include "telemetry/destinations.h"
#include "telemetry/export.h"

namespace run {
namespace {

constexpr std::chrono::minutes kAfterLimitMin{1};

// A live terminal has what these two say in one line, once the agent has started.
void LogPolicy(const Request& request, const Plan& plan) {
  WarnOfAnyName(plan.policy);
  if (StyleOf(request).live) return;
  logging::Info("policy read", {{"source", plan.policy.record.source},
                                {"file", plan.policy.file},
                                {"ref", plan.policy.record.ref}});
}

// The host of the agent's model, if the policy refused it; else empty.
std::string DeniedModel(const Request& request, const Plan& plan,
                        const report::DenialList& denials) {
  for (const policy::ModelHost& model : ModelHostsOf(plan.description(), request)) {
    for (const report::DeniedRequest& denied : denials.denials) {
      if (denied.by_policy && policy::HostMatches(model.host, denied.denial.host)) {
        return denied.denial.host;
      }
    }
  }
  return {};
}

// Reads what was recorded of the requests of a run; notes it, and adds what it says to `signs`.
Status ReadRecords(const Stage& stage, RunSigns* signs) {
  const auto& [request, plan, directory, recorder, signals, driver] = stage;
  report::DenialList denials = TRY(report::ReadDenials(directory.at()));
  recorder.Note(denials);
  if (plan.learn) TRY(plan.learn->Append(denials.denials, recorder.secrets()));
  recorder.NoteAccount(directory.at());
  if (!request.backend.local) return Ok();  // Its records do not say what models answered.
  report::ModelUse use = TRY(report::ReadModelUse(directory.at()));
  recorder.Note(use, plan.budget);
  if (!use.narrowed.empty()) recorder.NoteAbout({}, "after-untrusted", use.narrowed);
  signs->budget = use.exhausted;
  signs->refused_by = use.refused_by;
  if (!plan.agent.streams_json()) return Ok();
  signs->model_status = use.last_status;
  signs->model_broke_off = use.broke_off;
  signs->model_denied = DeniedModel(request, plan, denials);
  return Ok();
}

// Collecting the changes of an agent that a limit ended may take as long as the agent might have.
SignalWatch::Bounds BoundsAfter(const AgentEnd& end, const Request& request) {
  SignalWatch::Bounds bounds;
  bounds.processor_max = end.processor_max;
  bounds.late = end.kind;
  if (end.kind != EndKind::kExited) {
    bounds.until = Deadline::After(
        std::max<std::chrono::seconds>(std::chrono::seconds(request.timeout_s), kAfterLimitMin));
  }
  return bounds;
}

// Runs one program to its end, and reads what was recorded of it.
Result<CheckEnd> RunCheck(const Stage& stage) {
  std::unique_ptr<Enclosure> enclosure = stage.request.backend.make(stage);
  TRY(enclosure->Start());
  AgentEnd end = TRY(enclosure->Attend());
  RunSigns signs = TRY(enclosure->CompleteRecords(&end));
  TRY(ReadRecords(stage, &signs));
  return CheckEnd{std::move(end), std::move(signs)};
}

// Until the changes are known, the record says that some may be missing.
void NoteUncollected(const Stage& stage) {
  change::ChangeSet none;
  none.complete = false;
  const change::Repository* git = stage.plan.checkout.git();
  stage.recorder.Note(none, git == nullptr ? "" : git->prefix(), "");
}

// Notes the commit that was checked out and, where the checkout had its files and no others, the
// tree that the changes make of it.
void NoteTree(const Plan& plan, const change::ChangeSet& changes, Recorder& recorder) {
  const change::Repository* git = plan.checkout.git();
  if (git == nullptr || git->unborn()) return;
  const Result<std::string> head = git->ResolveCommit("HEAD");
  if (!head.ok()) return;
  const Result<bool> clean = git->IsClean();
  const Result<std::string> tree = git->TreeWith(head.value(), git->prefix(), changes.patch);
  const bool known = clean.ok() && clean.value() && tree.ok();
  recorder.NoteTree(head.value(), known ? tree.value() : "");
}

// Returns what the agent changed; an empty set that is not complete where that cannot be had.
Result<Collected> TakeChanges(const Stage& stage, Enclosure& enclosure, AgentEnd* end) {
  std::optional<change::ChangedTree> tree = TRY(enclosure.Collect(end));
  Collected collected;
  collected.applies = stage.driver.applies(stage.request.apply);
  collected.changes.complete = false;
  if (!tree) return collected;
  if (stage.request.record_files) {
    TRY(RecordFiles(*tree, stage.plan, stage.directory, stage.recorder.secrets()));
  }
  collected.changes = TRY(CollectChanges(*tree, stage.plan, stage.recorder));
  if (collected.applies && stage.driver.applies_ignored(stage.request.apply_ignored)) {
    collected.ignored = TRY(CollectIgnored(*tree, collected.changes, stage.plan, stage.recorder));
  }
  return collected;
}

// One run, in order. `removal` receives what may be done while the report is written.
Status Carry(const OptionRules& rules, Request& request, ReportDirectory& directory,
             Recorder& recorder, Driver& driver, std::function<void()>* removal) {
  Signals signals = TRY(CatchSignals());
  std::optional<SignalWatch> watch(std::in_place, signals, recorder, directory.at(),
                                   SignalWatch::Bounds{});
  TRY(watch->Start());
  TRY(request.backend.check(request));
  Plan plan = TRY(PrepareRun(rules, &request, recorder));
  TRY(request.backend.check(request));  // With what the task adds.
  watch.reset();
  driver.Replace(&plan.agent);
  LogPolicy(request, plan);

  const Stage stage{request, plan, directory, recorder, signals, driver};
  if (plan.allowance) TRY(plan.allowance->Reserve(&plan.budget));
  std::unique_ptr<Enclosure> enclosure = request.backend.make(stage);
  Status started = enclosure->Start();
  if (!started.ok() && plan.allowance) plan.allowance->Settle(0);
  TRY(std::move(started));
  AgentEnd end = TRY(driver.Attend(*enclosure));
  NoteUncollected(stage);
  RunSigns signs = TRY(enclosure->CompleteRecords(&end).Context("reading the records"));
  TRY(ReadRecords(stage, &signs).Context("reading the records"));
  if (plan.allowance) plan.allowance->Settle(recorder.record().usage.priced_cost_usd);
  if (!request.backend.cancels) {
    watch.emplace(signals, recorder, directory.at(), BoundsAfter(end, request),
                  [&enclosure] { enclosure->RemoveTraces(); });
    TRY(watch->Start());
  }
  Collected collected = TRY(TakeChanges(stage, *enclosure, &end));
  const change::ChangeSet& changes = collected.changes;
  if (request.attests()) NoteTree(plan, changes, recorder);
  report::OutcomeRecord outcome = JudgeRun(plan, end, std::move(signs), changes, recorder);
  enclosure->Explain(end, &outcome);
  recorder.Phase("judgement");
  watch.reset();  // Changes that are being applied are finished.
  const std::string checkout = plan.checkout.path;
  const bool in_git = plan.checkout.git() != nullptr;
  const bool checks = !plan.checks.scripts.empty() && !changes.patch.empty() && !request.lasting;
  if (checks && outcome.kind == report::OutcomeKind::kSuccess) {
    auto run = [&signals](const Request& asked, Plan& check, ReportDirectory& place,
                          Recorder& own) {
      Driver shell;
      return RunCheck({asked, check, place, own, signals, shell});
    };
    outcome = TRY(RunChecks(request, std::move(plan), directory, changes, recorder, run)
                      .Context("checking the changes"));
    outcome.agent_status = end.status;
    recorder.Phase("checks");
  }
  *removal = enclosure->TakeRemoval();
  return FinishRun(std::move(outcome), request, collected, checkout, in_git, recorder);
}

// States what the report says of the run, signed if anything can sign. Everything of the run is
// dead. Returns the chain of its records that is stated under a signature; or empty.
Result<std::string> Attest(attest::Signer& signer, const ReportDirectory& directory) {
  const codec::Json statement =
      TRY(attest::DescribeRun(directory.lock.get(), attest::OwnDigest()).Context("attesting"));
  const std::string text = codec::RenderJsonLine(statement);
  if (!signer.can_sign()) {
    TRY(report::WriteWhole(directory.lock.get(), report::kUnsignedFile, text + "\n"));
    logging::Warn(
        "the statement about the run is not signed: this job has no identity to sign with",
        {{"file", directory.path + "/" + report::kUnsignedFile}});
    return std::string();
  }
  const attest::Statement parsed = TRY(attest::ParseStatement(text));
  const std::string sha256 = parsed.DigestOf("run.json");
  const std::string bundle = TRY(signer.Sign(text, sha256).Context("signing what the run did"));
  TRY(report::WriteWhole(directory.lock.get(), report::kStatementFile, bundle));
  logging::Info("the run is attested", {{"file", directory.path + "/" + report::kStatementFile}});
  return attest::ChainOf(sha256);
}

Result<int> PrintPlan(Request request, const OptionRules& rules) {
  Recorder recorder(request);
  Plan plan = TRY(PrepareRun(rules, &request, recorder));
  const std::string text = TRY(request.backend.describe(request, plan, recorder));
  TRY(sys::WriteAll(STDOUT_FILENO, text));
  return 0;
}

}  // namespace

Result<sandbox::AgentInput> Driver::OpenInput(const agent::AgentPlan& plan) {
  return sandbox::AgentInput(TRY(run::OpenInput(plan.stdin_text)));
}

Result<int> Run(Request request, const OptionRules& rules, Driver* driver) {
  if (request.plan_only && request.backend.describe != nullptr) {
    return PrintPlan(std::move(request), rules);
  }
  telemetry::Destinations destinations =
      TRY(telemetry::FindDestinations(request.events_to, sys::Environment));
  if (destinations.any()) destinations.reach = {request.ca_file, HostProxy()};
  request.times_lines = destinations.otlp.on();
  ReportDirectory directory = TRY(ReportDirectory::Prepare(request.report_dir, request.workdir));
  std::optional<attest::Signer> signer;
  if (request.attests()) {
    signer = TRY(attest::Signer::Prepare(
        request,
        {request.trusted_root, {.ca_file = request.ca_file, .proxy = HostProxy()}, IsInCi()}));
  }
  Recorder recorder(request);
  Driver agent;
  std::function<void()> removal;
  Status carried =
      Carry(rules, request, directory, recorder, driver != nullptr ? *driver : agent, &removal);
  // Removing the sandbox's mounts, cgroups and files takes about as long as writing the report. No
  // process is started from here on: a fork may not meet another thread.
  sys::BackgroundTask removing;
  if (removal) removing = sys::BackgroundTask(removal);
  const bool in_place = !directory.has_earlier();  // What is there is of this run.
  Result<int> status = Conclude(std::move(carried), request, directory, recorder);
  std::string chain;
  if (signer && status.ok() && directory.started()) {
    removing.Wait();
    Result<std::string> attested = Attest(*signer, directory).Kind(ErrorKind::kReported);
    if (!attested.ok()) {
      status = std::move(attested).error();
    } else {
      chain = std::move(attested).value();
    }
  }
  if (destinations.any()) {
    telemetry::Export(
        {recorder.record(), in_place ? directory.at() : "", recorder.TakeLineTimes(), chain},
        destinations);
  }
  return status;
}

}  // namespace run
