// SPDX-License-Identifier: Apache-2.0
// One run from event to report. Read RunAgent() as the table of contents of the product.
#include "run/run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

#include "base/log.h"
#include "base/privileges.h"
#include "base/sys.h"
#include "base/thread.h"
#include "change/capture.h"
#include "change/gate.h"
#include "change/given/given_files.h"
#include "codec/data/java_keystore.h"
#include "gateway/gateway.h"
#include "policy/model/host_pattern.h"
#include "report/agent_findings.h"
#include "report/denials.h"
#include "report/event_lines.h"
#include "report/model_use.h"
#include "report/terminal/end_log.h"
#include "report/terminal/live_view.h"
#include "report/write.h"
#include "run/budget.h"
#include "run/checks.h"
#include "run/collect.h"
#include "run/companion.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/host_proxy.h"
#include "run/lost_refs.h"
#include "run/model_access.h"
#include "run/outcome.h"
#include "run/policy_reload.h"
#include "run/policy_source.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "run/shown/git_copy.h"
#include "run/shown/git_files.h"
#include "run/shown/plan_text.h"
#include "run/signal_watch.h"
#include "run/supervise.h"
#include "run/trusted/config.h"
#include "sandbox/sandbox.h"

namespace run {
namespace {

constexpr std::chrono::minutes kAfterLimitMin{1};
constexpr std::chrono::seconds kGatewayGrace{5};  // The time to write its last records.

// Reads `--policy FILE` as the run's beginning did. Borrows both.
PolicyReload NewReload(const Request& request, const Plan& plan) {
  auto read = [&request, &plan]() -> Result<LoadedPolicy> {
    PolicySource source = TRY(FindPolicy(request, nullptr, plan.checkout.path, plan.ref));
    LoadedPolicy next = TRY(LoadPolicy(std::move(source), plan.policy_context, plan.in_image()));
    AddResolvedBinaries(plan.in_image(), &next.parsed.policy);
    TRY(CheckCountable(next, plan.budget));
    return next;
  };
  const bool again = !request.policy_file.empty() && !plan.only_reads;
  return PolicyReload({again, request.keep_policy}, read, plan.policy, plan.ecosystems);
}

// The first directory on the way to `path` that others than its owner cannot enter, or "".
std::string FindClosed(const std::string& path, const sandbox::HostView& host) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if ((host.mode(path.substr(0, end)) & S_IXOTH) == 0) return path.substr(0, end);
  }
  return (host.mode(path) & S_IXOTH) == 0 ? path : "";
}

// Plans what git needs of the repository, as far as the tier can give it.
void PlanGit(const std::string& checkout, const GitFiles& git, const sandbox::HostView& host,
             sandbox::SandboxRequest* wanted) {
  wanted->workspace_files = git.in_checkout;
  wanted->repository_files = git.outside;
  wanted->repository_directories = git.directories;
  if (wanted->isolation == sandbox::Isolation::kNamespaces) {
    wanted->repository_layers = git.layers;
    return;
  }
  auto check = [&](const std::string& objects) {
    std::string closed = host.free_id ? FindClosed(objects, host) : "";
    if (closed.empty()) return;
    wanted->notes.push_back("git does not work: the agent's user cannot enter " + closed);
  };
  for (const std::string& objects : git.directories) check(objects);
  if (git.layers.empty()) return;
  check(git.common + "/objects");
  Result<std::vector<sandbox::WorkspaceFile>> copy = CopyGitDirectory(git, checkout);
  if (!copy.ok()) {
    wanted->notes.push_back("git does not work: " + copy.error().what);
    return;
  }
  std::vector<sandbox::WorkspaceFile> files = std::move(copy).value();
  wanted->workspace_files.insert(wanted->workspace_files.end(), files.begin(), files.end());
  wanted->shown_empty.push_back(checkout + "/.git");
  wanted->repository_directories.push_back(git.common + "/objects");
}

// `authority` gives the run's certificate; it is asked last, since the gateway makes it meanwhile.
Result<sandbox::SandboxPlan> PrepareLayout(const Request& request, const Plan& plan,
                                           const std::string& report_dir,
                                           const std::string& scratch,
                                           const std::function<Result<std::string>()>& authority) {
  sandbox::HostView host = sandbox::ReadHost(plan.checkout.path);
  const bool landlock = request.isolation == sandbox::Isolation::kLandlock;
  const bool moved = !landlock && !plan.checkout.shown_at.empty();
  const std::string& checkout = moved ? plan.checkout.shown_at : plan.checkout.path;
  Programs programs = FindRunPrograms(plan.program, plan.policy.parsed.policy.filesystem, checkout,
                                      plan.in_image(), host);
  sandbox::SandboxRequest wanted;
  sandbox::Places places;
  places.checkout = checkout;
  wanted.isolation = request.isolation;
  if (landlock) wanted.scratch = scratch;
  if (landlock) places = sandbox::PlacesIn(scratch, host);
  wanted.policy = plan.policy.parsed.policy;
  wanted.checkout = checkout;
  if (moved) wanted.copied_to = plan.checkout.path;
  wanted.foreign = plan.foreign;
  if (plan.image) wanted.image = PlanImage(*plan.image);
  wanted.argv = plan.agent.argv;
  const std::string name = request.agent == agent::kAnyProgram ? "agentic-ci" : request.agent;
  wanted.home_files = {{".gitconfig", RenderGitConfig(name)}};
  for (const auto& [path, text] : plan.agent.home_files) wanted.home_files.push_back({path, text});
  for (sandbox::WorkspaceFile& file : TrustFiles(places)) {
    wanted.home_files.push_back(std::move(file));
  }
  wanted.env = AgentEnvironment(request, plan.agent, plan.program, programs,
                                plan.credentials.environment, plan.in_image(), places);
  wanted.extra_read_only = std::move(programs.shown);
  wanted.notes = std::move(programs.notes);
  wanted.host_secrets = HostSecrets();
  wanted.host_secrets.insert(wanted.host_secrets.end(), plan.credentials.files.begin(),
                             plan.credentials.files.end());
  wanted.host_secrets.insert(wanted.host_secrets.end(), plan.git.included_outside.begin(),
                             plan.git.included_outside.end());
  PlanGit(checkout, plan.git, host, &wanted);
  wanted.workspace_files.insert(wanted.workspace_files.end(), plan.replaced.begin(),
                                plan.replaced.end());
  wanted.notes.insert(wanted.notes.end(), plan.notes.begin(), plan.notes.end());
  // The report by default lies in the checkout; what is written there is not for the agent.
  if (!moved) wanted.shown_empty.push_back(report_dir);
  wanted.limits = request;
  wanted.ca_java = SharedText::Later();
  sandbox::SandboxPlan layout = TRY(sandbox::PlanSandbox(wanted, host));
  codec::JavaKeyStore java;
  java.Add(plan.ca_bundle_pem.get());
  const std::string pem = TRY(authority());
  java.Add(pem);
  wanted.ca_pem.Set(pem);
  wanted.ca_bundle.Set(plan.ca_bundle_pem.get() + "\n" + pem);
  wanted.ca_java.Set(java.Render());
  return layout;
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

Result<sandbox::Sandbox> StartSandbox(const Request& request, const Plan& plan,
                                      const ReportDirectory& report, sandbox::Cgroup cgroup,
                                      gateway::Gateway& gateway, Companion* companion) {
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
  auto open = [&]() -> Result<sandbox::AgentInput> {
    if (companion != nullptr) return companion->OpenInput();
    return sandbox::AgentInput(TRY(OpenInput(plan.agent.stdin_text)));
  };
  sandbox::AgentInput input = TRY(open());
  Result<sandbox::Sandbox> started =
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

// A live terminal has what these two say in one line, once the agent has started.
void LogPolicy(const Request& request, const Plan& plan) {
  WarnOfAnyName(plan.policy);
  if (StyleOf(request).live) return;
  logging::Info("policy read", {{"source", plan.policy.record.source},
                                {"file", plan.policy.file},
                                {"ref", plan.policy.record.ref}});
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

// Returns the files that receive the agent's output. With a companion, its clients are shown the
// output, and no terminal is.
OutputFiles OutputFilesOf(const Request& request, const Plan& plan,
                          const ReportDirectory& directory, const Companion* companion) {
  const int terminal = request.json ? STDERR_FILENO : STDOUT_FILENO;
  return {.raw = plan.agent.streams_json() ? directory.agent_jsonl.get() : -1,
          .readable = directory.agent_log.get(),
          .terminal = companion == nullptr ? terminal : -1,
          .shown = ShownAt(terminal),
          .style = companion == nullptr ? StyleOf(request) : report::TerminalStyle{},
          .section = forge::MakeLogSection(sys::Environment, "agentic_ci_agent",
                                           "The agent's output", std::time(nullptr)),
          .events = directory.at() + "/events.ocsf.jsonl",
          .may_be_codex = plan.agent.may_be_codex,
          .stream = plan.agent.stream};
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

// Reads what the gateway recorded of the run; notes and judges it.
Result<RunSigns> ReadSigns(const Request& request, const Plan& plan, const std::string& report_dir,
                           Recorder& recorder) {
  report::DenialList denials = TRY(report::ReadDenials(report_dir));
  recorder.Note(denials);
  if (plan.learn) TRY(plan.learn->Append(denials.denials, recorder.secrets()));
  recorder.NoteAccount(report_dir);
  report::ModelUse use = TRY(report::ReadModelUse(report_dir));
  recorder.Note(use, plan.budget);
  RunSigns signs{use.exhausted, use.refused_by};
  if (!plan.agent.streams_json()) return signs;
  signs.model_status = use.last_status;
  signs.model_broke_off = use.broke_off;
  signs.model_denied = DeniedModel(request, plan, denials);
  return signs;
}

// All of it is borrowed.
Companion::Stage StageOf(sandbox::Sandbox& sandbox, Plan& plan, const ReportDirectory& directory,
                         Recorder& recorder) {
  return {sandbox,
          plan.checkout,
          directory,
          plan.replaced,
          recorder.secrets(),
          plan.policy.record.sha256,
          [&plan](const change::ChangeSet& changes) { return GatesOf(plan, changes); }};
}

// Notes what the agent did with git: what no patch carries, and what it merged.
void NoteGit(const sandbox::Sandbox& sandbox, Plan* plan, Recorder& recorder) {
  AgentGit git = ReadAgentGit(plan->checkout.path, plan->git, sandbox.upper(), sandbox.layers());
  for (report::Finding& finding : DescribeLostRefs(git.lost)) recorder.Note(std::move(finding));
  plan->merged = ChooseMerged(*plan, git.merged);
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

// A sandbox whose program has ended: nothing of it is alive.
struct Watched {
  sandbox::Sandbox sandbox;
  AgentEnd end;
  RunSigns signs;
};

// Runs from the gateway to the last of its records. Leaving early at any line is safe: owners are
// destroyed in reverse, so the sandbox is dead before the gateway goes away.
Result<Watched> WatchSandbox(const Request& request, Plan& plan, ReportDirectory& directory,
                             Recorder& recorder, const Signals& signals, Companion* companion,
                             change::GivenFiles* given) {
  // Kept for after the gateway has them, and hidden from the two processes that start next.
  std::vector<KeptSecret> secrets = TRY(KeepSecrets(plan.credentials));
  auto [identity_asks, identity_answers] = TRY(sys::SocketPair());
  sandbox::Cgroup cgroup = sandbox::Cgroup::Create(request);
  gateway::GatewayConfig config =
      TRY(ConfigureGateway(request, plan, directory, recorder, std::move(identity_asks), cgroup));
  gateway::Gateway gateway =
      TRY(gateway::Gateway::Start(std::move(config)).Context("starting the gateway"));
  recorder.Phase("gateway");
  sandbox::Sandbox sandbox =
      TRY(StartSandbox(request, plan, directory, std::move(cgroup), gateway, companion));
  recorder.Note(sandbox.controls());
  TRY(CheckRequired(plan.config.require, sandbox.controls()));
  TRY(Connect(sandbox, gateway));
  recorder.Phase("sandbox");
  caller::ProgramLinks links = TRY(FollowLinks(plan.policy.parsed.policy, sandbox));
  TRY(sandbox.StartAgent().Context("starting the agent"));
  directory.Start();
  recorder.Note(sandbox.connects(), links);
  recorder.secrets() = MaskOf(secrets);
  caller::ConnectionOwners owners(sandbox.init_pid(), sandbox.connects().descriptor() >= 0,
                                  sandbox.TakeDiagnostics(), std::move(links),
                                  sandbox.connects().brokered());
  LogStart(request, recorder.record());
  PolicyReload reload = NewReload(request, plan);
  OutputFiles files = OutputFilesOf(request, plan, directory, companion);
  std::optional<change::BackgroundLook> look;  // A companion looks by itself.
  if (given != nullptr) look.emplace(plan.checkout.path, plan.checkout.git(), sandbox.began());
  if (companion != nullptr) {
    TRY(companion->Begin(StageOf(sandbox, plan, directory, recorder)));
  }
  Result<AgentEnd> watched =
      Supervise(sandbox, gateway, owners, reload, {identity_answers.get(), &signals}, request,
                files, recorder.secrets(), companion);
  if (look) *given = look->Take();
  if (!watched.ok()) recorder.Phase("agent");  // It has run, whatever could not be seen of it.
  AgentEnd end = TRY(std::move(watched).Context("watching the agent"));
  if (companion != nullptr) companion->End();
  NoteStrangers(owners, recorder);
  recorder.Note(end, sandbox);
  recorder.Phase("agent");

  // A gateway that could not write its last records costs records, and no changes.
  bool finished = gateway.Finish(Deadline::After(kGatewayGrace)).ok();
  if (!finished && end.kind == EndKind::kExited) end.kind = EndKind::kGatewayLost;
  recorder.Note(end, gateway);
  RunSigns signs =
      TRY(ReadSigns(request, plan, directory.at(), recorder).Context("reading the records"));
  if (request.record_programs) recorder.NotePrograms(directory.at());
  return Watched{std::move(sandbox), std::move(end), std::move(signs)};
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

// One run, in order. `ended` receives the sandbox.
Status RunAgent(const OptionRules& rules, Request& request, ReportDirectory& directory,
                Recorder& recorder, Companion* companion, std::optional<sandbox::Sandbox>* ended) {
  Signals signals = TRY(CatchSignals());
  std::optional<SignalWatch> watch(std::in_place, signals, recorder, directory.at(),
                                   SignalWatch::Bounds{});
  TRY(watch->Start());
  Plan plan = TRY(PrepareRun(rules, &request, recorder));
  watch.reset();
  if (companion != nullptr) companion->Replace(&plan.agent);
  LogPolicy(request, plan);

  change::GivenFiles given;
  auto [watched_sandbox, end, signs] = TRY(WatchSandbox(request, plan, directory, recorder, signals,
                                                        companion, companion ? nullptr : &given));
  sandbox::Sandbox& sandbox = ended->emplace(std::move(watched_sandbox));
  watch.emplace(signals, recorder, directory.at(), BoundsAfter(end, request), &sandbox);
  TRY(watch->Start());
  change::ChangedTree tree = TreeOf(sandbox, directory.path, plan.replaced);
  tree.meanwhile.given = &given;
  if (companion != nullptr) tree.meanwhile.Add(companion->meanwhile());
  if (request.record_files) TRY(RecordFiles(tree, plan, directory, recorder.secrets()));
  NoteGit(sandbox, &plan, recorder);
  change::ChangeSet changes = TRY(CollectChanges(tree, plan, recorder));
  report::OutcomeRecord outcome = JudgeRun(plan, end, std::move(signs), changes, recorder);
  recorder.Phase("judgement");
  watch.reset();  // Changes that are being applied are finished.
  const std::string checkout = plan.checkout.path;
  const bool in_git = plan.checkout.git() != nullptr;
  bool checks = !plan.checks.scripts.empty() && !changes.patch.empty() && companion == nullptr;
  if (checks && outcome.kind == report::OutcomeKind::kSuccess) {
    auto run = [&signals](const Request& asked, Plan& check, ReportDirectory& place,
                          Recorder& own) -> Result<CheckEnd> {
      Watched watched = TRY(WatchSandbox(asked, check, place, own, signals, nullptr, nullptr));
      return CheckEnd{std::move(watched.end), std::move(watched.signs)};
    };
    outcome = TRY(RunChecks(request, std::move(plan), directory, changes, recorder, run)
                      .Context("checking the changes"));
    outcome.agent_status = end.status;
    recorder.Phase("checks");
  }
  const bool applies = companion != nullptr ? companion->applies(request.apply) : request.apply;
  return FinishRun(std::move(outcome), request, changes, applies, checkout, in_git, recorder);
}

// Prints what would be done, with no agent and no gateway, whose certificate is not known yet.
Result<int> PrintPlan(Request request, const OptionRules& rules) {
  Recorder recorder(request);
  Plan plan = TRY(PrepareRun(rules, &request, recorder));
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
  for (const std::string& script : plan.checks.scripts) text += PlanLine("check", script);
  recorder.secrets() = MaskOf(TRY(KeepSecrets(plan.credentials)));
  text += PlanLines("prompt", recorder.Finish().prompt);
  TRY(sys::WriteAll(STDOUT_FILENO, text + RenderSandbox(layout)));
  return 0;
}

}  // namespace

Result<int> Run(Request request, const OptionRules& rules, Companion* companion) {
  ENSURE(request.backend == BackendKind::kNative);  // The caller chooses between backends.
  if (request.plan_only) return PrintPlan(std::move(request), rules);
  ReportDirectory directory = TRY(ReportDirectory::Prepare(request.report_dir, request.workdir));
  Recorder recorder(request);
  std::optional<sandbox::Sandbox> ended;
  Status carried = RunAgent(rules, request, directory, recorder, companion, &ended);
  // Removing the sandbox's mounts, cgroups and files takes about as long as writing the report. No
  // process is started from here on: a fork may not meet another thread.
  const sys::BackgroundTask undoing([&ended] { ended.reset(); });
  return Conclude(std::move(carried), request, directory, recorder);
}

}  // namespace run
