// SPDX-License-Identifier: Apache-2.0
#include "run/native/native.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <optional>

#include "base/log.h"
#include "base/privileges.h"
#include "base/sys.h"
#include "change/given/given_files.h"
#include "report/event_lines.h"
#include "report/terminal/live_view.h"
#include "report/write.h"
#include "run/budget.h"
#include "run/collect.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/host_proxy.h"
#include "run/model_access.h"
#include "run/native/layout.h"
#include "run/native/lost_refs.h"

namespace run {
namespace {

constexpr std::chrono::seconds kGatewayGrace{5};  // The time to write its last records.

// Reads `--policy FILE` as the run's beginning did. Borrows both.
PolicyReload NewReload(const Request& request, const Plan& plan) {
  auto read = [&request,
               &plan](const std::optional<PolicyReload::Text>& given) -> Result<LoadedPolicy> {
    LoadedPolicy next;
    if (given) {
      next = TRY(LoadPolicyText(given->text, given->shown, plan.policy_context, plan.in_image()));
    } else {
      PolicySource source = TRY(FindPolicy(request, nullptr, plan.checkout.path, plan.ref));
      next = TRY(LoadPolicy(std::move(source), plan.policy_context, plan.in_image()));
    }
    AddResolvedBinaries(plan.in_image(), &next.parsed.policy);
    TRY(CheckCountable(next, plan.budget));
    return next;
  };
  const bool again = !request.policy_file.empty() && !plan.only_reads;
  return PolicyReload({again, request.keep_policy}, read, plan.policy, plan.ecosystems);
}

// Takes the secrets and the record files.
Result<gateway::GatewayConfig> ConfigureGateway(const Request& request, Plan& plan,
                                                ReportDirectory& directory,
                                                const Recorder& recorder, Fd identity,
                                                const sandbox::Cgroup& cgroup) {
  gateway::GatewayConfig config;
  config.sandbox_uid = recorder.record().isolation.uid;
  config.host_bytes_max = request.host_bytes;
  config.policy = plan.policy.parsed.policy;
  config.policy_file = plan.policy.file;
  config.secrets = std::move(plan.credentials.secrets);
  config.grants = std::move(plan.credentials.grants);
  config.ca_bundle_pem = plan.ca_bundle_pem;
  config.events_jsonl = std::move(directory.events_jsonl);
  config.events_log = std::move(directory.events_log);
  config.identity = std::move(identity);
  config.budget = plan.budget;
  config.budget.model_servers = ModelServers(request, config.secrets);
  config.sent_texts = request.sent_texts;
  config.untrusted_texts = plan.untrusted;
  std::vector<gateway::Authority>& models = config.models;
  for (const policy::ModelHost& model : ModelHostsOf(plan.description(), request)) {
    models.push_back({model.host, model.port});
  }
  if (!request.model_host.empty()) models.push_back({request.model_host, request.model_port});
  config.prices = plan.config.prices;
  config.groups = TRY(cgroup.OpenTasks({"memory", "cpu"}));
  config.proxy = TRY(HostEgressProxy());
  return config;
}

Result<std::unique_ptr<sandbox::Sandbox>> StartSandbox(const Request& request, const Plan& plan,
                                                       const ReportDirectory& report,
                                                       sandbox::Cgroup cgroup,
                                                       gateway::Gateway& gateway, Driver& driver) {
  sandbox::HostResources around{gateway.pid(), TRY(MakeScratch(request, plan.checkout.path)),
                                std::move(cgroup)};
  if (request.record_programs) {
    around.programs = TRY(sys::OpenAt(report.lock.get(), report::kProgramsFile,
                                      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0644));
  }
  auto authority = [&gateway]() -> Result<std::string> {
    return gateway.AwaitAuthority().Context("starting the gateway");
  };
  sandbox::SandboxPlan layout =
      TRY(PrepareLayout(request, plan, report.path, around.scratch ? around.scratch->path() : "",
                        authority)
              .Context("planning the sandbox"));
  sandbox::AgentInput input = TRY(driver.OpenInput(plan.agent));
  Result<std::unique_ptr<sandbox::Sandbox>> started =
      sandbox::Sandbox::Start(std::move(layout), std::move(input), std::move(around))
          .Context("starting the sandbox");
  if (started.ok()) return started;
  Error error = std::move(started).error();
  // A lesser tier is asked for, never taken.
  if (error.code == Code::kUnsupported && request.isolation == sandbox::Isolation::kNamespaces &&
      sys::landlock::Abi() > 0) {
    const char* other = "agentic-ci run --isolation landlock ...";
    error.hint = error.hint.empty() ? other : error.hint + " (or " + other + ")";
  }
  return error;
}

void LogStart(const Request& request, const report::RunRecord& record) {
  const report::TerminalStyle style = StyleOf(request);
  if (style.live) {
    (void)sys::WriteAll(STDERR_FILENO, report::RenderStart(record, style));
  } else {
    const std::string tier(TextOf(request.isolation));
    logging::Info("agent started", {{"agent", request.agent}, {"isolation", tier}});
  }
}

// Returns the files that receive the agent's output. That of a lasting sandbox is shown to its
// clients, and on no terminal.
OutputFiles OutputFilesOf(const Request& request, const Plan& plan,
                          const ReportDirectory& directory) {
  const int terminal = request.json ? STDERR_FILENO : STDOUT_FILENO;
  return {.raw = plan.agent.streams_json() ? directory.agent_jsonl.get() : -1,
          .readable = directory.agent_log.get(),
          .terminal = request.lasting ? -1 : terminal,
          .shown = ShownAt(terminal),
          .style = request.lasting ? report::TerminalStyle{} : StyleOf(request),
          .section = forge::MakeLogSection(sys::Environment, "agentic_ci_agent",
                                           "The agent's output", std::time(nullptr)),
          .events = directory.at() + "/events.ocsf.jsonl",
          .may_be_codex = plan.agent.may_be_codex,
          .timed = request.times_lines,
          .stream = plan.agent.stream};
}

// Notes that in tier landlock, other programs of this machine can reach the sandbox's ways out, and
// get nothing.
void NoteStrangers(const caller::ConnectionOwners& owners, Recorder& recorder) {
  if (owners.strangers() == 0) return;
  report::Finding finding;
  finding.rule = "other-process";
  finding.severity = report::Severity::kNote;
  finding.message = "not the agent's: " + std::to_string(owners.strangers()) +
                    " connections of other processes of this machine to the gateway were closed";
  recorder.Note(std::move(finding));
}

}  // namespace

Status NativeEnclosure::Start() {
  const auto& [request, plan, directory, recorder, signals, driver] = stage_;
  // Kept for after the gateway has them, and hidden from the two processes that start next.
  secrets_ = TRY(KeepSecrets(plan.credentials));
  auto [identity_asks, identity_answers] = TRY(sys::SocketPair());
  identity_answers_ = std::move(identity_answers);
  sandbox::Cgroup cgroup = sandbox::Cgroup::Create(request);
  gateway::GatewayConfig config =
      TRY(ConfigureGateway(request, plan, directory, recorder, std::move(identity_asks), cgroup));
  gateway_.emplace(TRY(gateway::Gateway::Start(std::move(config)).Context("starting the gateway")));
  recorder.Phase("gateway");
  sandbox_ = TRY(StartSandbox(request, plan, directory, std::move(cgroup), *gateway_, driver));
  recorder.Note(sandbox_->controls());
  TRY(CheckRequired(plan.config.require, sandbox_->controls()));
  TRY(Connect(*sandbox_, *gateway_));
  recorder.Phase("sandbox");
  return Ok();
}

Result<Supervisor*> NativeEnclosure::StartAgent(SupervisorHooks hooks) {
  const auto& [request, plan, directory, recorder, signals, driver] = stage_;
  sandbox::Sandbox& sandbox = *sandbox_;
  caller::ProgramLinks links = TRY(FollowLinks(plan.policy.parsed.policy, sandbox));
  TRY(sandbox.StartAgent().Context("starting the agent"));
  directory.Start();
  recorder.Note(sandbox.connects(), links);
  recorder.secrets() = MaskOf(secrets_);
  owners_.emplace(sandbox.init_pid(), sandbox.connects().descriptor() >= 0,
                  sandbox.TakeDiagnostics(), std::move(links), sandbox.connects().brokered());
  LogStart(request, recorder.record());
  reload_.emplace(NewReload(request, plan));
  supervisor_.emplace(
      Supervised{sandbox, *gateway_, *owners_, *reload_, identity_answers_.get(), signals, request,
                 recorder.secrets(), plan.credentials.subject_files, recorder},
      OutputFilesOf(request, plan, directory), std::move(hooks));
  return &*supervisor_;
}

Result<std::string> NativeEnclosure::ReplacePolicy(const PolicyReload::Text& given,
                                                   const std::function<Status()>& keep) {
  LoadedPolicy next = TRY(reload_->Check(*gateway_, given));
  TRY(keep());
  std::string sha256 = next.record.sha256;
  Status replaced = reload_->Replace(*gateway_, std::move(next));
  if (replaced.ok()) return sha256;
  supervisor_->End(EndKind::kGatewayLost);
  return std::move(replaced).error();
}

Result<AgentEnd> NativeEnclosure::Finish() {
  AgentEnd end = TRY(supervisor_->Finish().Context("watching the agent"));
  NoteStrangers(*owners_, stage_.recorder);
  stage_.recorder.Note(end, *sandbox_);
  stage_.recorder.Phase("agent");
  return end;
}

Result<AgentEnd> NativeEnclosure::Attend() {
  Supervisor& supervisor = *TRY(StartAgent({}));
  change::BackgroundLook look(stage_.plan.checkout.path, stage_.plan.checkout.git(),
                              sandbox_->began());
  Status watched = Ok();
  while (watched.ok() && !supervisor.ended()) watched = supervisor.Turn();
  given_ = look.Take();
  // It has run, whatever could not be seen of it.
  if (!watched.ok()) stage_.recorder.Phase("agent");
  TRY(std::move(watched).Context("watching the agent"));
  return Finish();
}

Result<RunSigns> NativeEnclosure::CompleteRecords(AgentEnd* end) {
  // A gateway that could not write its last records costs records, and no changes.
  const bool finished = gateway_->Finish(Deadline::After(kGatewayGrace)).ok();
  if (!finished && end->kind == EndKind::kExited) end->kind = EndKind::kGatewayLost;
  stage_.recorder.Note(*end, *gateway_);
  gateway_.reset();
  if (stage_.request.record_programs) stage_.recorder.NotePrograms(stage_.directory.at());
  return RunSigns{};
}

// Notes what the agent did with git: what no patch carries, and what it merged.
void NativeEnclosure::NoteGit() {
  Plan& plan = stage_.plan;
  AgentGit git = ReadAgentGit(plan.checkout.path, plan.git, sandbox_->upper(), sandbox_->layers());
  for (report::Finding& finding : DescribeLostRefs(git.lost)) {
    stage_.recorder.Note(std::move(finding));
  }
  plan.merged = ChooseMerged(plan, git.merged);
}

Result<std::optional<change::ChangedTree>> NativeEnclosure::Collect(AgentEnd* /*end*/) {
  change::ChangedTree tree = TreeOf(*sandbox_, stage_.directory.path, stage_.plan.replaced);
  tree.meanwhile.given = &given_;
  if (const change::Meanwhile* known = stage_.driver.meanwhile()) tree.meanwhile.Add(*known);
  NoteGit();
  return std::optional(std::move(tree));
}

std::function<void()> NativeEnclosure::TakeRemoval() {
  // A function's state can be copied; the sandbox cannot.
  return [ended = std::make_shared<std::unique_ptr<sandbox::Sandbox>>(std::move(sandbox_))] {
    ended->reset();
  };
}

Backend NativeBackend() {
  return {.name = "native",
          .check = [](const Request& /*request*/) { return Ok(); },
          .make = [](const Stage& stage) -> std::unique_ptr<Enclosure> {
            return std::make_unique<NativeEnclosure>(stage);
          },
          .describe = DescribePlan};
}

}  // namespace run
