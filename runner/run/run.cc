// SPDX-License-Identifier: Apache-2.0
// One run from event to report. Read RunAgent() as the table of contents of the product.
#include "run/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "base/log.h"
#include "base/sys.h"
#include "change/apply.h"
#include "change/capture.h"
#include "change/gate.h"
#include "codec/data/java_keystore.h"
#include "gateway/gateway.h"
#include "report/agent_findings.h"
#include "report/denials.h"
#include "report/model_use.h"
#include "report/write.h"
#include "run/budget.h"
#include "run/credentials.h"
#include "run/end_log.h"
#include "run/environment.h"
#include "run/git_files.h"
#include "run/outcome.h"
#include "run/plan_text.h"
#include "run/policy_reload.h"
#include "run/policy_source.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "run/signal_watch.h"
#include "run/supervise.h"
#include "run/trusted/config.h"
#include "sandbox/sandbox.h"

namespace run {
namespace {

constexpr size_t kRunJsonBytesMax = 16 << 20;
constexpr std::chrono::seconds kGatewayGrace{5};  // To write its last records.

// Reads `--policy FILE` as the run's beginning did. Borrows both.
PolicyReload NewReload(const Request& request, const Plan& plan) {
  auto read = [&request, &plan]() -> Result<LoadedPolicy> {
    PolicySource source = TRY(FindPolicy(request, nullptr, plan.checkout.path, plan.ref));
    LoadedPolicy next = TRY(LoadPolicy(std::move(source), plan.policy_context, plan.in_image()));
    TRY(CheckCountable(next, plan.budget));
    return next;
  };
  return PolicyReload({!request.policy_file.empty(), request.keep_policy}, read, plan.policy,
                      plan.ecosystems);
}

// `authority` gives the run's certificate; it is asked last, since the gateway makes it meanwhile.
Result<sandbox::SandboxPlan> PrepareLayout(const Request& request, const Plan& plan,
                                           const std::string& report_dir,
                                           const std::string& scratch,
                                           const std::function<Result<std::string>()>& authority) {
  sandbox::HostView host = sandbox::ReadHost(plan.checkout.path);
  Programs programs = FindRunPrograms(plan.program, plan.policy.parsed.policy.filesystem,
                                      plan.checkout.path, plan.in_image(), host);
  sandbox::SandboxRequest wanted;
  sandbox::Places places;
  places.checkout = plan.checkout.path;
  if (request.isolation == "landlock") {
    wanted.isolation = sandbox::Isolation::kLandlock;
    wanted.scratch = scratch;
    places = sandbox::PlacesIn(scratch);
  }
  wanted.policy = plan.policy.parsed.policy;
  wanted.checkout = plan.checkout.path;
  if (plan.image) wanted.image = PlanImage(*plan.image);
  wanted.argv = plan.agent.argv;
  wanted.env = AgentEnvironment(request, plan.agent, plan.program, programs,
                                plan.credentials.environment, plan.in_image(), places);
  wanted.extra_read_only = std::move(programs.shown);
  wanted.notes = std::move(programs.notes);
  wanted.host_secrets = HostSecrets();
  wanted.host_secrets.insert(wanted.host_secrets.end(), plan.credentials.files.begin(),
                             plan.credentials.files.end());
  GitFiles git = FindGitFiles(plan.checkout.path);
  wanted.workspace_files = std::move(git.in_checkout);
  wanted.repository_files = std::move(git.outside);
  wanted.repository_directories = std::move(git.directories);
  // The report by default lies in the checkout; what is written there is not for the agent.
  wanted.shown_empty = {report_dir};
  wanted.limits = LimitsOf(request);
  wanted.ca_bundle_pem = plan.ca_bundle_pem;
  wanted.ca_pem = TRY(authority());
  wanted.ca_java = codec::RenderJavaKeyStore(plan.ca_bundle_pem + "\n" + wanted.ca_pem);
  return sandbox::PlanSandbox(wanted, host);
}

// Takes the secrets and the record files.
Result<gateway::GatewayConfig> ConfigureGateway(Plan& plan, ReportDirectory& directory, Fd identity,
                                                const sandbox::Cgroup& cgroup) {
  gateway::GatewayConfig config;
  config.policy = plan.policy.parsed.policy;
  config.policy_file = plan.policy.file;
  config.secrets = std::move(plan.credentials.secrets);
  config.grants = std::move(plan.credentials.grants);
  config.ca_bundle_pem = plan.ca_bundle_pem;
  config.events_jsonl = std::move(directory.events_jsonl);
  config.events_log = std::move(directory.events_log);
  config.identity = std::move(identity);
  config.budget = plan.budget;
  config.prices = plan.config.prices;
  config.groups = TRY(cgroup.OpenTasks({"memory", "cpu"}));
  return config;
}

change::GateLimits GatesOf(const Plan& plan, const change::ChangeSet& changes) {
  change::GateLimits gates;
  if (plan.checkout.git() != nullptr) gates.prefix = plan.checkout.git()->prefix();
  if (!changes.files.empty()) gates.links = change::FindProtectedLinks(plan.checkout.top());
  gates.paths = plan.config.paths;
  return gates;
}

Result<sandbox::Sandbox> StartSandbox(const Request& request, const Plan& plan,
                                      const std::string& report_dir, sandbox::Cgroup cgroup,
                                      gateway::Gateway& gateway) {
  sandbox::Surroundings around{gateway.pid(), TRY(MakeScratch(request, plan.checkout.path)),
                               std::move(cgroup)};
  auto authority = [&gateway]() -> Result<std::string> {
    TRY(gateway.AwaitReady().Context("starting the gateway"));
    return gateway.ca_pem();
  };
  sandbox::SandboxPlan layout =
      TRY(PrepareLayout(request, plan, report_dir, around.scratch ? around.scratch->path() : "",
                        authority)
              .Context("planning the sandbox"));
  Fd input = TRY(OpenInput(plan.agent.stdin_text));
  Result<sandbox::Sandbox> started =
      sandbox::Sandbox::Start(std::move(layout), std::move(input), std::move(around))
          .Context("starting the sandbox");
  if (started.ok()) return started;
  Error error = std::move(started).error();
  // A lesser tier is asked for, never taken.
  if (error.code == Code::kUnsupported && request.isolation == "namespaces") {
    const char* other = "agentic-ci run --isolation landlock ...";
    error.hint = error.hint.empty() ? other : error.hint + " (or " + other + ")";
  }
  return error;
}

// What the configuration requires is enforced here, not emulated.
Status CheckRequired(const std::vector<std::string>& names,
                     const std::vector<sandbox::Control>& controls) {
  for (const std::string& name : names) {
    std::string found = "it is not part of this tier or of this run's limits";
    for (const sandbox::Control& control : controls) {
      if (control.name == name) found = control.state + ": " + control.note;
    }
    if (found.starts_with("enforced")) continue;
    Error error{Code::kUnsupported, std::string(kConfigPath) + " requires '" + name +
                                        "' to be enforced; here, " + found};
    error.hint = "agentic-ci doctor";
    return error;
  }
  return Ok();
}

// What the agent changed, and what it says that it found.
Result<change::ChangeSet> CollectChanges(const sandbox::Sandbox& sandbox,
                                         const std::string& report_dir, const Checkout& checkout,
                                         Recorder& recorder) {
  const change::Repository* git = checkout.git();
  change::ChangeSet changes =
      TRY(change::CaptureChanges(TreeOf(sandbox, report_dir), checkout.path, git, {})
              .Context("collecting the changes"));
  recorder.Note(changes, git == nullptr ? "" : git->prefix());
  if (changes.taken_out) recorder.Note(report::ParseAgentFindings(*changes.taken_out));
  return changes;
}

// One run, in order. Leaving early at any line is safe: owners are destroyed in reverse, so the
// sandbox is dead before the gateway goes away.
Status RunAgent(const Request& request, ReportDirectory& directory, Recorder& recorder) {
  Signals signals = TRY(CatchSignals());
  std::optional<SignalWatch> watch(std::in_place, signals, recorder, directory.path);
  Plan plan = TRY(PrepareRun(request, recorder));
  watch.reset();
  logging::Info("policy read", {{"source", plan.policy.record.source},
                                {"file", plan.policy.file},
                                {"ref", plan.policy.record.ref}});

  // Kept for after the gateway has them, and hidden from the two processes that start next.
  std::vector<KeptSecret> secrets = TRY(KeepSecrets(plan.credentials));
  auto [identity_asks, identity_answers] = TRY(sys::SocketPair());
  sandbox::Cgroup cgroup = sandbox::Cgroup::Create(LimitsOf(request));
  gateway::GatewayConfig config =
      TRY(ConfigureGateway(plan, directory, std::move(identity_asks), cgroup));
  gateway::Gateway gateway =
      TRY(gateway::Gateway::Start(std::move(config)).Context("starting the gateway"));
  recorder.Phase("gateway");

  sandbox::Sandbox sandbox =
      TRY(StartSandbox(request, plan, directory.path, std::move(cgroup), gateway));
  recorder.Note(sandbox);
  TRY(CheckRequired(plan.config.require, sandbox.controls()));
  TRY(Connect(sandbox, gateway));
  recorder.Phase("sandbox");

  caller::ProgramLinks links = TRY(FollowLinks(plan.policy.parsed.policy, sandbox));
  TRY(sandbox.Go().Context("starting the agent"));
  recorder.Note(sandbox.connects(), links);
  recorder.secrets() = MaskOf(secrets);
  caller::ConnectionOwners owners(sandbox.init_pid(), sandbox.connects().descriptor() >= 0,
                                  sandbox.TakeDiagnostics(), std::move(links));
  logging::Info("agent started", {{"agent", request.agent}, {"isolation", request.isolation}});
  PolicyReload reload = NewReload(request, plan);
  OutputFiles files{plan.agent.streams_json ? directory.agent_jsonl.get() : -1,
                    directory.agent_log.get(), request.json ? STDERR_FILENO : STDOUT_FILENO};
  AgentEnd end = TRY(Supervise(sandbox, gateway, owners, reload, {identity_answers.get(), &signals},
                               request, files, recorder.secrets())
                         .Context("watching the agent"));
  recorder.Note(end, sandbox);
  recorder.Phase("agent");

  // A gateway that could not write its last records leaves a run that nobody can vouch for. What
  // the agent did is collected all the same.
  bool finished = gateway.Finish(Deadline::After(kGatewayGrace)).ok();
  if (!finished && end.kind == EndKind::kExited) end.kind = EndKind::kGatewayLost;
  recorder.Note(end, gateway);
  recorder.Note(TRY(report::ReadDenials(directory.path).Context("reading the records")));
  report::ModelUse use = TRY(report::ReadModelUse(directory.path).Context("reading the records"));
  recorder.Note(use, plan.budget);
  RunSigns signs{use.exhausted, use.refused_by};
  watch.emplace(signals, recorder, directory.path, end.processor_max, &sandbox);
  change::ChangeSet changes = TRY(CollectChanges(sandbox, directory.path, plan.checkout, recorder));
  signs.nothing_changed = changes.files.empty() && changes.complete;
  recorder.Phase("changes");
  change::Verdict verdict =
      change::JudgeChanges(changes, GatesOf(plan, changes), &recorder.secrets());
  recorder.Note(verdict);
  report::OutcomeRecord outcome = DecideOutcome(end, signs, verdict);
  recorder.Note(outcome);
  recorder.Phase("judgement");
  watch.reset();  // What is being applied is finished.
  if (request.apply && outcome.kind == report::OutcomeKind::kSuccess && !changes.patch.empty()) {
    TRY(change::ApplyPatch(plan.checkout.path, changes).Context("applying the changes"));
    recorder.NoteApplied();
  }
  return Ok();
}

// What would be done, with no agent and no gateway: its certificate is the one thing not known yet.
Result<int> PrintPlan(const Request& request) {
  Recorder recorder(request);
  Plan plan = TRY(PrepareRun(request, recorder));
  Result<std::string> report_dir = sys::RealPath(request.report_dir);  // It may not exist yet.
  sandbox::SandboxPlan layout =
      TRY(PrepareLayout(request, plan, report_dir.ok() ? report_dir.value() : "",
                        "/var/tmp/agentic-ci-scratch", [] { return Result<std::string>(""); })
              .Context("planning the sandbox"));
  const report::PolicyRecord& policy = plan.policy.record;
  std::string text;
  if (plan.image) {
    const image::VerifiedImage& image = plan.image->pulled.image;
    text += PlanLine("image", image.reference.ToString() + " is " + image.manifest_digest +
                                  ", signed by " + image.signer);
  }
  std::string source = policy.source;
  if (!policy.path.empty()) source += " " + policy.path;
  if (!policy.ref.empty()) source += " at " + policy.ref;
  text += PlanLine("policy", source) + RenderEndpoints(plan.policy.parsed.policy);
  for (const gateway::BoundSecret& secret : plan.credentials.secrets) {
    text += PlanLine("secret", secret.name + " for " + secret.host);
  }
  TRY(sys::WriteAll(STDOUT_FILENO, text + RenderSandbox(layout)));
  return 0;
}

}  // namespace

Result<int> Run(const Request& request) {
  if (request.plan_only) return PrintPlan(request);
  ReportDirectory directory =
      TRY(ReportDirectory::Prepare(request.report_dir).Context(kPreparingReport));
  Recorder recorder(request);
  Status carried = RunAgent(request, directory, recorder);
  // A signal before there was an agent to end: while an image was fetched.
  std::optional<EndKind> interrupted = carried.ok() ? std::nullopt : PendingEnd();
  if (interrupted) {
    AgentEnd end;
    end.kind = *interrupted;
    recorder.Note(DecideOutcome(end, {}, {}));
  } else if (!carried.ok()) {
    recorder.NoteFailure(carried.error());
  }
  const report::ReportInput& input = recorder.Finish();
  TRY(report::WriteReport(directory.path, input).Context("writing the report"));
  if (!carried.ok() && !interrupted) {
    Error error = std::move(carried).error();
    error.what = recorder.secrets().Mask(error.what);
    return error;
  }
  LogEnd(input.record, directory.path);
  if (request.json) {
    std::string json = TRY(sys::ReadFile(directory.path + "/run.json", kRunJsonBytesMax));
    TRY(sys::WriteAll(STDOUT_FILENO, json));
  }
  return input.record.outcome.exit_code;
}

}  // namespace run
