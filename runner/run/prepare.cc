// SPDX-License-Identifier: Apache-2.0
#include "run/prepare.h"

#include <chrono>
#include <set>

#include "agent/description.h"
#include "agent/version.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/wire/http_target.h"
#include "forge/open/open.h"
#include "net/http_client.h"
#include "run/budget.h"
#include "run/host_proxy.h"
#include "run/model_access.h"
#include "run/registry_sources.h"
#include "run/run.h"
#include "run/shown/base_instructions.h"
#include "run/shown/left_files.h"
#include "run/trusted/actors.h"
#include "run/trusted/prompt_file.h"
#include "run/trusted/signed_event.h"
#include "run/trusted/trust.h"

namespace run {
namespace {

constexpr size_t kCaBundleBytesMax = 16 << 20;
constexpr std::chrono::minutes kAskingLimit{1};

std::string HostOf(const std::string& url) {
  Result<codec::RequestUrl> parsed = codec::ParseRequestUrl(url);
  return parsed.ok() ? std::move(parsed).value().host : "";
}

policy::ParseContext PolicyContext(const Request& request, const forge::Event& event,
                                   const Plan& plan) {
  policy::ParseContext context;
  context.agent_name = request.agent;
  context.model_hosts = [hosts = ModelHostsOf(plan.description(), request)](const std::string&) {
    return hosts;
  };
  std::string host = HostOf(event.server_url);
  if (host.empty() && plan.checkout.repository) {
    host = HostOf(plan.checkout.repository->OriginUrl());
  }
  if (!host.empty()) context.forge_host = host;
  return context;
}

Result<agent::AgentPlan> PlanRunAgent(
    const Request& request, const Plan& plan,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  agent::AgentRequest wanted;
  wanted.prompt = request.prompt;
  wanted.model = request.model;
  wanted.command = request.command;
  wanted.providers = ProviderNames(request);
  wanted.environment = environment;
  wanted.environment.insert(wanted.environment.end(), request.env.begin(), request.env.end());
  if (!plan.described) return agent::PlanCommand(wanted);
  wanted.executable = plan.program.path;
  return agent::PlanAgent(*plan.described, wanted);
}

Result<std::string> ReadCaBundle(const Request& request) {
  if (!request.ca_file.empty()) return ReadNamedFile(request.ca_file, kCaBundleBytesMax);
  Result<std::string> system = net::SystemCaBundle();
  // A host without one trusts nobody: the gateway then refuses every TLS upstream.
  if (!system.ok()) return std::string();
  return sys::ReadFile(system.value(), kCaBundleBytesMax);
}

// The version of an agent's package on the host, and whether it is one that was tried.
std::string LookAtVersion(const Plan& plan) {
  if (plan.image || !plan.described || plan.program.path.empty()) return "";
  const std::string version = agent::PackageVersion(plan.program.path);
  const agent::AgentDescription& known = *plan.described;
  if (!agent::IsTried(version, known.tried)) {
    logging::Warn("this version of the agent was not tried",
                  {{"agent", known.name}, {"version", version}, {"tried", known.tried}});
  }
  return version;
}

// The policy of the run, without the ecosystems. OpenShell resolves programs by itself.
Status OpenPolicy(const Request& request, const forge::Event& event, PolicySource source,
                  Plan* plan) {
  plan->policy_context = PolicyContext(request, event, *plan);
  plan->policy = TRY(LoadPolicy(std::move(source), plan->policy_context, plan->in_image()));
  if (request.backend.local) {
    AddResolvedBinaries(plan->in_image(), &plan->policy.parsed.policy);
  }
  return Ok();
}

// The registries of the configured ecosystems, for the agent and what it starts.
Status OpenEcosystems(const Request& request, Plan* plan) {
  EcosystemRequest wanted;
  wanted.names = plan->config.ecosystems;
  wanted.image = plan->in_image();
  wanted.limits = request;
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

// A run that will be refused is refused before an image is fetched, as far as can be known by then:
// the image's programs and policy are not known yet.
Status CheckBeforeStart(const Request& request, const Trust& trust,
                        const policy::ParseContext& context, const PolicySource& source,
                        const Plan& plan) {
  LoadedPolicy policy = TRY(LoadPolicy(source, context, nullptr));
  TRY(CheckCredentials(request, trust, policy.parsed.policy, policy.file));
  if (!plan.described) return Ok();  // The image may have a command.
  TRY(PlanRunAgent(request, plan, ForeseenVariables(request)));
  return Ok();
}

// The image, and what runs in it by default.
Status PullRunImage(Request* request, Plan* plan, Recorder& recorder) {
  plan->image = TRY(
      PrepareImage(*request, plan->checkout.top(), &plan->config).Context("preparing the image"));
  recorder.Note(Record(*plan->image));
  // Once, when it is unpacked; run.json has them of every run.
  if (plan->image->pulled.unpacked.fresh) {
    for (const std::string& warning : plan->image->warnings) {
      logging::Warn("the image differs from its description", {{"what", warning}});
    }
  }
  if (!plan->described && request->command.empty()) request->command = plan->image->command;
  recorder.Phase("image");
  return Ok();
}

// An event that is about no pull request, or does not say where its head is, leaves it to the
// workflow what to check out.
bool NamesItsHead(const forge::Event& event) {
  return event.forge == forge::ForgeKind::kNone ||
         (event.proposal_number > 0 && !event.head_sha.empty());
}

// The event alone says where the code is from; for secrets it also matters who started the run.
// Asked of the forge where there is a token to ask with.
Result<Trust> AskWhoStarted(const Request& request, const Config& config,
                            const std::optional<ForkRun>& fork, const Trust& trust, bool is_signed,
                            forge::Event& event) {
  const bool wanted = !request.secrets.empty() || !request.providers.empty();
  if (!wanted || event.forge == forge::ForgeKind::kNone) return trust;
  const forge::Facts& facts = forge::FactsOf(event.forge);
  if (facts.starter == forge::StarterProof::kSignature) {
    return request.gitlab_trust_variables ? trust : RequireSignature(event, is_signed, trust);
  }
  if (facts.starter != forge::StarterProof::kPermission) return JudgeTrust(event);  // Not trusted.
  std::string token = sys::Environment(facts.token).value_or("");
  if (token.empty()) return JudgeActors(event, trust, config.bots, nullptr, fork);
  ForgeAccess access{Secret(token), request.ca_file, HostProxy()};
  return AskForge(event, config.bots, fork, std::move(access), Deadline::After(kAskingLimit))
      .Context("asking the forge who started this run");
}

// Returns the commit that is checked out; empty without one, as on an unborn branch.
std::string HeadOf(const Checkout& checkout) {
  if (checkout.git() == nullptr) return {};
  Result<std::string> commit = checkout.git()->ResolveCommit("HEAD");
  return commit.ok() ? std::move(commit).value() : "";
}

Result<bool> VerifySignature(const Request& request, forge::Event* event) {
  const auto verify = forge::FactsOf(event->forge).verify;
  if (verify == nullptr) return false;
  return verify(sys::Environment,
                {request.gitlab_issuer, request.gitlab_keys, request.ca_file, HostProxy()}, event,
                Deadline::After(kAskingLimit));
}

// Returns what AskWhoStarted() does, for a run that may go on. Who may not start it ends it here,
// before anything else can be wrong with it: a failure that a stranger causes is never posted.
Result<Trust> Admit(const Request& request, const Plan& plan, const std::string& action,
                    const Trust& trust, bool is_signed, forge::Event& event, Recorder& recorder) {
  std::optional<ForkRun> fork;
  if (plan.config.fork_models) {
    fork = ForkRun{action, HeadOf(plan.checkout), PlanBudget(request, plan.config).bounds_use()};
  }
  Result<Trust> judged = AskWhoStarted(request, plan.config, fork, trust, is_signed, event);
  if (judged.ok()) recorder.Note(event, judged.value());
  const Status admitted =
      judged.ok() ? RefuseUntrusted(request, judged.value()) : Status(judged.error());
  if (admitted.ok()) return judged;
  recorder.NoteUntrusted();
  return admitted.error();
}

// Returns the error for a run of which it is not known who started it: nothing is assumed then.
Error NoPolicyFor(const forge::Event& event, const TrustedRef& ref) {
  return {Code::kSetup,
          event.unread_ci + " is set, and there is no " + kPolicyPath + " at " + ref.ref,
          "--policy FILE"};
}

Status TakeChecks(const Task& task, const OptionRules& rules, Plan* plan) {
  if (!task.checks) return Ok();
  plan->checks = *task.checks;
  if (!plan->checks.timeout) return Ok();
  Request check;
  TRY(rules.set("timeout", plan->checks.timeout->text, &check));
  plan->check_timeout_s = check.timeout_s;
  return Ok();
}

// The policy of the task's checks, with the run's ecosystems.
Status LoadCheckPolicy(const TrustedRef& ref, Plan* plan) {
  if (plan->checks.policy_file.empty()) return Ok();
  PolicySource source;
  source.text = plan->checks.policy;
  source.file = plan->checks.policy_file;
  source.record.source = "repository";
  source.record.path = source.file;
  source.record.ref = ref.ref;
  source.record.commit = plan->policy.record.commit;
  LoadedPolicy loaded = TRY(LoadPolicy(std::move(source), plan->policy_context, plan->in_image()));
  AddNetwork(plan->ecosystems, &loaded.parsed.policy);
  TRY(CheckCountable(loaded, plan->budget));
  plan->check_policy = std::move(loaded);
  return Ok();
}

// Adds to the request what the configuration's task says.
Status TakeConfig(const forge::Event& event, OpenedConfig opened, const OptionRules& rules,
                  Request* request, Plan* plan) {
  const Task* task = TRY(TakeTask(opened.sources(event), rules, request));
  plan->checkout = std::move(opened.checkout);
  plan->ref = std::move(opened.ref);
  if (task != nullptr) {
    opened.config.gates = Merge(std::move(opened.config.gates), task->gates);
    TRY(TakeChecks(*task, rules, plan));
  }
  plan->config = std::move(opened.config);
  plan->described = TRY(agent::DescribeAgent(request->agent, plan->config.agents));
  return Ok();
}

// Before the agent starts: a file that cannot be written to costs no run.
Status OpenLearnFile(const Request& request, Plan* plan) {
  if (request.learn.empty() || request.plan_only) return Ok();
  std::vector<advise::BoundSecret> secrets;
  for (const gateway::BoundSecret& secret : plan->credentials.secrets) {
    secrets.push_back({secret.name, secret.host});
  }
  plan->learn = TRY(LearnFile::Open(request.learn, plan->checkout.top(), std::move(secrets)));
  return Ok();
}

// Replaces instruction files by those of the trusted commit.
Status ReplaceInstructions(Plan* plan) {
  plan->replaced = TRY(FindBaseInstructions(plan->checkout.git(), plan->checkout.path, plan->ref)
                           .Context("reading the agent instructions"));
  if (plan->replaced.empty()) return Ok();
  logging::Info(
      "agent instructions are read from the trusted commit",
      {{"first", plan->replaced.front().path}, {"files", std::to_string(plan->replaced.size())}});
  for (const sandbox::WorkspaceFile& file : plan->replaced) {
    plan->notes.push_back(file.path + ": as at " + plan->ref.ref + " for the agent" +
                          (file.gone ? ", where there is none" : ""));
  }
  return Ok();
}

// Notes the proxy that the agent's connections leave through, if there is one.
Status NoteEgressProxy(Plan* plan, Recorder& recorder) {
  std::optional<gateway::EgressProxy> proxy = TRY(HostEgressProxy());
  if (!proxy) return Ok();
  plan->notes.push_back("connections leave through the proxy " + proxy->Shown() +
                        (proxy->by_name() ? ", which resolves their names" : ""));
  recorder.Note(*proxy);
  return Ok();
}

// Takes away the credentials that earlier steps left in the checkout, and notes each file.
Status WithholdCredentials(const Request& request, Plan* plan, Recorder& recorder) {
  const std::string& checkout = plan->checkout.path;
  Result<std::string> report = sys::RealPath(request.report_dir);
  LeftFiles left = TRY(FindLeftFiles(checkout, report.ok() ? report.value() : ""));
  plan->foreign = codec::NeutralLine(left.foreign);
  plan->git = TRY(FindGitFiles(checkout, left.repositories));
  std::set<std::string> paths(left.credentials.begin(), left.credentials.end());
  paths.insert(plan->git.included.begin(), plan->git.included.end());
  for (const sandbox::WorkspaceFile& file : plan->replaced) paths.erase(file.path);
  size_t noted = 0;
  for (sandbox::WorkspaceFile& file :
       WithholdFiles(plan->checkout.git(), checkout, {paths.begin(), paths.end()})) {
    const char* what = file.gone
                           ? "not given to the agent: it may hold credentials, and no commit has it"
                           : "as in HEAD for the agent: what it holds by now may be credentials";
    plan->notes.push_back(file.path + ": " + what);
    if (noted++ < kWithheldNotesMax) recorder.NoteAbout(file.path, kWithheldRule, what);
    plan->replaced.push_back(std::move(file));
  }
  plan->replaced.insert(plan->replaced.end(), plan->git.nested.begin(), plan->git.nested.end());
  return Ok();
}

// In tier landlock the agent has a copy at another path: the scripts of a Python environment lead
// to the checkout's own, which nothing there may read.
void NoteEnvironments(const Request& request, Plan* plan, Recorder& recorder) {
  if (request.isolation != sandbox::Isolation::kLandlock) return;
  for (const std::string name : {".venv", "venv"}) {
    if (!sys::Exists(plan->checkout.path + "/" + name + "/pyvenv.cfg")) continue;
    const std::string what =
        "its scripts and activate name the checkout's own path, which tier landlock " +
        ("does not show; what works there: " + name) + "/bin/python -m MODULE, or uv sync";
    plan->notes.push_back(name + ": " + what);
    recorder.NoteAbout(name, "moved-environment", what);
  }
}

}  // namespace

Result<Checkout> OpenCheckout(const std::string& workdir) {
  Checkout checkout;
  checkout.path = TRY(ResolveNamedDirectory(workdir));
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

Result<OpenedConfig> OpenConfig(const forge::Event& event, const OptionRules& rules,
                                const Request& request) {
  OpenedConfig opened;
  opened.checkout = TRY(OpenCheckout(request.workdir).Context("opening the checkout"));
  opened.ref = TRY(FindTrustedRef(event, request.policy_ref));
  opened.config =
      TRY(LoadConfig(opened.checkout.git(), opened.checkout.path, opened.ref, CheckBy(rules)));
  if (!opened.config.tasks.empty() || opened.config.absent || opened.config.fork_models) {
    opened.text = TRY(forge::ReadEventText(sys::Environment, event));
    opened.local = TRY(DescribeLocal(event, request, opened.checkout.git()));
  }
  return opened;
}

Result<Request> ResolveRequest(Request request, const OptionRules& rules) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  OpenedConfig opened = TRY(OpenConfig(event, rules, request));
  Plan plan;
  TRY(TakeConfig(event, std::move(opened), rules, &request, &plan));
  return request;
}

Result<ForeseenPolicy> ForeseePolicy(const OptionRules& rules, Request request) {
  const forge::Event event;  // A policy is asked about, not a run.
  OpenedConfig opened = TRY(OpenConfig(event, rules, request));
  ForeseenPolicy foreseen;
  const std::vector<Task>& tasks = opened.config.tasks;
  const bool named = !request.task.empty() || !request.given.empty();
  if (!named && !tasks.empty()) request.task = tasks.front().name;
  if (!named && tasks.size() > 1) {
    foreseen.notes.push_back("as in the task '" + request.task + "', the first of " +
                             std::to_string(tasks.size()) + "; --task NAME is for another");
  }
  request.given.emplace_back("prompt");  // What the agent is asked opens nothing.
  Plan plan;
  TRY(TakeConfig(event, std::move(opened), rules, &request, &plan));
  PolicySource source = TRY(FindPolicy(request, plan.checkout.git(), plan.checkout.path, plan.ref));
  TRY(OpenPolicy(request, event, std::move(source), &plan));
  if (!request.image.empty()) {
    foreseen.notes.push_back("the image " + request.image +
                             " was not looked into: its programs and registries are not known");
  } else if (!plan.config.ecosystems.empty()) {
    Status opened_all = OpenEcosystems(request, &plan);
    if (!opened_all.ok()) {
      foreseen.notes.push_back("registries are not known here: " + opened_all.error().what);
    }
  }
  foreseen.policy = std::move(plan.policy);
  return foreseen;
}

Result<Trust> FindTrust(const OptionRules& rules, const Request& request) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  const bool is_signed = TRY(VerifySignature(request, &event));
  const Trust trust = JudgeTrust(event);
  if (!trust.trusted || event.forge == forge::ForgeKind::kNone) return trust;
  if (request.secrets.empty() && request.providers.empty()) return trust;
  OpenedConfig opened = TRY(OpenConfig(event, rules, request));
  return AskWhoStarted(request, opened.config, std::nullopt, trust, is_signed, event);
}

namespace {

Result<Plan> Prepare(const OptionRules& rules, Request* asked, Recorder& recorder) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  Result<bool> verified = VerifySignature(*asked, &event);
  if (!verified.ok()) recorder.NoteUntrusted();
  const bool is_signed = TRY(std::move(verified));
  Trust trust = JudgeTrust(event);
  if (is_signed && trust.trusted) trust.reason += ", as the job's ID token says";
  recorder.Note(event, trust);
  recorder.Phase("event");

  Plan plan;
  OpenedConfig opened = TRY(OpenConfig(event, rules, *asked));
  const std::string action = opened.text.action;
  TRY(TakeConfig(event, std::move(opened), rules, asked, &plan));
  const bool names_its_head = NamesItsHead(event);
  recorder.NoteTask();
  trust = TRY(Admit(*asked, plan, action, trust, is_signed, event, recorder));
  if (!names_its_head) recorder.NoteHead(HeadOf(plan.checkout));
  if (!asked->task.empty()) {
    logging::Info("task chosen", {{"task", asked->task}, {"agent", asked->agent}});
  }
  Request request = *asked;
  plan.budget = PlanBudget(request, plan.config);
  TRY(CheckPrices(plan.description(), request, plan.config, plan.budget));
  TRY(FindEcosystems(plan.config.ecosystems));
  if (!request.prompt_file.empty()) {
    request.prompt = TRY(ReadPromptFile(request.prompt_file, plan.checkout.git(), plan.ref)
                             .Context("reading the prompt"));
  }
  if (!request.lasting) recorder.NotePrompt(request.prompt);  // No agent of it is asked yet.
  PolicySource source = TRY(FindPolicy(request, plan.checkout.git(), plan.checkout.path, plan.ref));
  if (!event.unread_ci.empty() && !source.text) return NoPolicyFor(event, plan.ref);
  const bool local = request.backend.local;
  if (!request.image.empty() && local) {
    TRY(CheckBeforeStart(request, trust, PolicyContext(request, event, plan), source, plan));
    TRY(PullRunImage(&request, &plan, recorder));
  }
  if (local) plan.program = TRY(FindAgent(plan.description(), request, plan.in_image()));
  TRY(OpenPolicy(request, event, std::move(source), &plan));
  recorder.Note(plan.policy.record);
  TRY(CheckCountable(plan.policy, plan.budget));
  if (!plan.config.ecosystems.empty()) {
    TRY(OpenEcosystems(request, &plan).Context("opening the ecosystems"));
  }
  TRY(LoadCheckPolicy(plan.ref, &plan));
  if (trust.model) {
    plan.only_reads = true;
    CloseWrites(request, &plan.policy.parsed.policy);
    if (plan.check_policy) CloseWrites(request, &plan.check_policy->parsed.policy);
    plan.notes.emplace_back("a fork's run: all endpoints but its model's are for reading only");
  }
  recorder.Phase("policy");

  plan.credentials =
      TRY(CollectCredentials(request, trust, plan.policy.parsed.policy, plan.policy.file));
  TRY(OpenLearnFile(request, &plan));
  plan.agent = TRY(PlanRunAgent(request, plan, plan.credentials.environment));
  recorder.NoteCommand(plan.agent.argv);
  recorder.NoteVersion(LookAtVersion(plan));
  TRY(ReplaceInstructions(&plan));
  TRY(WithholdCredentials(request, &plan, recorder));
  NoteEnvironments(request, &plan, recorder);
  if (local) TRY(NoteEgressProxy(&plan, recorder).Context("reading the proxy of this machine"));
  plan.ca_bundle_pem = TRY(ReadCaBundle(request).Context("reading the certificate bundle"));
  return plan;
}

}  // namespace

Result<Plan> PrepareRun(const OptionRules& rules, Request* request, Recorder& recorder) {
  Result<Plan> plan = Prepare(rules, request, recorder);
  if (plan.ok()) return plan;
  return ForJob(std::move(plan).error());
}

}  // namespace run
