// SPDX-License-Identifier: Apache-2.0
// One run from event to report. Read RunAgent() as the table of contents of the product.
#include "run/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "agent/harness.h"
#include "base/log.h"
#include "base/sys.h"
#include "change/apply.h"
#include "change/capture.h"
#include "change/gate.h"
#include "change/repository.h"
#include "codec/data/java_keystore.h"
#include "forge/event.h"
#include "gateway/gateway.h"
#include "net/http_client.h"
#include "report/agent_findings.h"
#include "report/denials.h"
#include "report/model_use.h"
#include "report/write.h"
#include "run/budget.h"
#include "run/config.h"
#include "run/credentials.h"
#include "run/end_log.h"
#include "run/environment.h"
#include "run/git_files.h"
#include "run/image.h"
#include "run/outcome.h"
#include "run/plan_text.h"
#include "run/policy_reload.h"
#include "run/policy_source.h"
#include "run/recorder.h"
#include "run/registry_sources.h"
#include "run/report_directory.h"
#include "run/signal_watch.h"
#include "run/supervise.h"
#include "run/trust.h"
#include "sandbox/sandbox.h"

namespace run {
namespace {

constexpr size_t kPromptBytesMax = 1 << 20;
constexpr size_t kCaBundleBytesMax = 16 << 20;
constexpr size_t kRunJsonBytesMax = 16 << 20;
constexpr std::chrono::seconds kGatewayGrace{5};  // To write its last records.

// The checkout this run works on.
struct Checkout {
  std::string path;                              // Canonical; may be below the repository's top.
  std::optional<change::Repository> repository;  // None: a directory without git.
  const change::Repository* git() const { return repository ? &*repository : nullptr; }
  // All that a pull request may have written.
  const std::string& top() const { return repository ? repository->top() : path; }
};

// Everything decided before the first process starts.
struct Plan {
  Checkout checkout;
  TrustedRef ref;
  std::optional<RunImage> image;
  policy::ParseContext policy_context;
  LoadedPolicy policy;
  std::vector<policy::NetworkPolicy> ecosystems;  // In `policy`, and not in its file.
  Config config;
  gateway::BudgetLimits budget;
  AgentProgram program;
  agent::AgentPlan agent;
  RunCredentials credentials;
  std::string ca_bundle_pem;

  const RunImage* in_image() const { return image ? &*image : nullptr; }
};

Result<Checkout> OpenCheckout(const std::string& workdir) {
  Checkout checkout;
  checkout.path = TRY(sys::RealPath(workdir));
  if (checkout.path == "/") {
    return Error{Code::kUsage, "the checkout cannot be the root of the file system",
                 "--workdir DIR"};
  }
  Result<change::Repository> repository = change::Repository::Open(checkout.path);
  if (repository.ok()) {
    checkout.repository = std::move(repository).value();
  } else if (repository.error().code != Code::kNotFound) {
    return std::move(repository).error();
  }
  return checkout;
}

std::string HostOf(const std::string& url) {
  size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  size_t end = url.find_first_of("/:", scheme + 3);
  return url.substr(scheme + 3, end == std::string::npos ? end : end - scheme - 3);
}

policy::ParseContext PolicyContext(const Request& request, const forge::Event& event,
                                   const Checkout& checkout) {
  policy::ParseContext context;
  context.agent_name = request.agent;
  std::string host = HostOf(event.server_url);
  if (host.empty() && checkout.repository) host = HostOf(checkout.repository->OriginUrl());
  if (!host.empty()) context.forge_host = host;
  return context;
}

// The prompt of `--prompt-file`. A file in the checkout is the pull request's to shape, so it may
// not be a link to something that the agent would otherwise never see.
Result<std::string> ReadPrompt(const std::string& path, const std::string& checkout) {
  std::string real = TRY(sys::RealPath(path));
  size_t slash = path.rfind('/');
  std::string directory =
      TRY(sys::RealPath(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
  auto inside = [&](const std::string& place) { return (place + "/").starts_with(checkout + "/"); };
  if (inside(directory) && !inside(real)) {
    return Error{Code::kRefused, path + " is a symbolic link that leads out of the checkout"};
  }
  return sys::ReadFile(real, kPromptBytesMax);
}

Result<agent::AgentPlan> PlanTheAgent(
    const Request& request, const AgentProgram& program,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  agent::AgentRequest wanted;
  wanted.name = request.agent;
  wanted.prompt = request.prompt;
  wanted.model = request.model;
  wanted.command = request.command;
  wanted.executable = agent::ProgramOf(request.agent).empty() ? "" : program.path;
  for (const std::string& name : agent::KeyNames(request.agent)) {
    for (const auto& [variable, value] : environment) wanted.has_key |= variable == name;
    for (const auto& [variable, value] : request.env) wanted.has_key |= variable == name;
  }
  return agent::PlanAgent(wanted);
}

Result<std::string> ReadCaBundle(const Request& request) {
  if (!request.ca_file.empty()) return sys::ReadFile(request.ca_file, kCaBundleBytesMax);
  Result<std::string> system = net::SystemCaBundle();
  // A host without one trusts nobody: the gateway then refuses every TLS upstream.
  if (!system.ok()) return std::string();
  return sys::ReadFile(system.value(), kCaBundleBytesMax);
}

sandbox::SandboxLimits LimitsOf(const Request& request) {
  return {request.memory_bytes, request.cpus, request.pids, request.disk_bytes};
}

// The registries of the configured ecosystems, for the agent and what it starts.
Status OpenEcosystems(const Request& request, Plan* plan) {
  EcosystemRequest wanted;
  wanted.names = plan->config.ecosystems;
  wanted.image = plan->in_image();
  wanted.limits = LimitsOf(request);
  wanted.repository = plan->checkout.git();
  wanted.checkout = plan->checkout.path;
  wanted.ref = plan->ref;
  wanted.ca_file = request.ca_file;
  policy::Policy opened;
  TRY(AddEcosystems(wanted, &opened));
  plan->ecosystems = opened.network;
  AddNetwork(plan->ecosystems, &plan->policy.parsed.policy);
  return Ok();
}

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

// Whoever is refused in the end is refused before an image is fetched, as far as can be known by
// then: not which programs it has, and not its own policy.
Status CheckBeforehand(const Request& request, const Trust& trust,
                       const policy::ParseContext& context, const PolicySource& source) {
  LoadedPolicy policy = TRY(LoadPolicy(source, context, nullptr));
  TRY(CheckCredentials(request, trust, policy.parsed.policy, policy.file));
  if (request.agent == "command") return Ok();  // The image may have one.
  std::vector<std::pair<std::string, std::string>> keys;
  if (!request.secrets.empty() || !request.providers.empty()) {
    for (const std::string& name : agent::KeyNames(request.agent)) keys.emplace_back(name, "");
  }
  TRY(PlanTheAgent(request, {}, keys));
  return Ok();
}

// The image, and what runs in it when nobody says.
Status PullTheImage(Request* request, Plan* plan, Recorder& recorder) {
  plan->image = TRY(
      PrepareImage(*request, plan->checkout.top(), &plan->config).Context("preparing the image"));
  recorder.Note(Record(*plan->image));
  // Once, when it is unpacked; run.json has them of every run.
  if (plan->image->pulled.unpacked.fresh) {
    for (const std::string& warning : plan->image->warnings) {
      logging::Warn("the image differs from its description", {{"what", warning}});
    }
  }
  bool nameless = agent::ProgramOf(request->agent).empty() && request->command.empty();
  if (nameless) request->command = plan->image->command;
  recorder.Phase("image");
  return Ok();
}

// Where nothing is known of who started a run, nothing is assumed either.
Error NoPolicyFor(const forge::Event& event, const TrustedRef& ref) {
  return {Code::kSetup,
          event.unread_ci + " is set, and there is no " + kPolicyPath + " at " + ref.ref,
          "--policy FILE"};
}

// event -> trust -> image -> policy -> agent -> secrets: no agent and no gateway yet.
Result<Plan> PrepareRun(Request request, Recorder& recorder) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  Trust trust = JudgeTrust(event);
  recorder.Note(event, trust);
  recorder.Phase("event");

  Plan plan;
  plan.checkout = TRY(OpenCheckout(request.workdir).Context("opening the checkout"));
  plan.ref = TRY(FindTrustedRef(event, request.policy_ref));
  plan.config = TRY(LoadConfig(plan.checkout.git(), plan.checkout.path, plan.ref));
  plan.budget = PlanBudget(request, plan.config);
  TRY(CheckPrices(request, plan.config, plan.budget));
  TRY(FindEcosystems(plan.config.ecosystems));
  if (!request.prompt_file.empty()) {
    request.prompt =
        TRY(ReadPrompt(request.prompt_file, plan.checkout.path).Context("reading the prompt"));
  }
  PolicySource source = TRY(FindPolicy(request, plan.checkout.git(), plan.checkout.path, plan.ref));
  if (!event.unread_ci.empty() && !source.text) return NoPolicyFor(event, plan.ref);
  if (!request.image.empty()) {
    TRY(CheckBeforehand(request, trust, PolicyContext(request, event, plan.checkout), source));
    TRY(PullTheImage(&request, &plan, recorder));
  }
  plan.program = TRY(FindAgent(request, plan.in_image()));
  plan.policy_context = PolicyContext(request, event, plan.checkout);
  plan.policy = TRY(LoadPolicy(std::move(source), plan.policy_context, plan.in_image()));
  recorder.Note(plan.policy.record);
  TRY(CheckCountable(plan.policy, plan.budget));
  if (!plan.config.ecosystems.empty()) {
    TRY(OpenEcosystems(request, &plan).Context("opening the ecosystems"));
  }
  recorder.Phase("policy");

  plan.credentials =
      TRY(CollectCredentials(request, trust, plan.policy.parsed.policy, plan.policy.file));
  plan.agent = TRY(PlanTheAgent(request, plan.program, plan.credentials.environment));
  recorder.NoteCommand(plan.agent.argv);
  plan.ca_bundle_pem = TRY(ReadCaBundle(request).Context("reading the certificate bundle"));
  return plan;
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
  watch.emplace(signals, recorder, directory.path, end.processor_max, &sandbox.cgroup());
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
