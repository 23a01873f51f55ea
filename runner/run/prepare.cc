// SPDX-License-Identifier: Apache-2.0
#include "run/prepare.h"

#include <algorithm>
#include <set>

#include "agent/description.h"
#include "agent/version.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/wire/http_target.h"
#include "net/http_client.h"
#include "run/budget.h"
#include "run/host_proxy.h"
#include "run/model_access.h"
#include "run/registry_sources.h"
#include "run/shown/base_instructions.h"
#include "run/shown/left_files.h"
#include "run/trusted/prompt_file.h"
#include "run/trusted/untrusted_texts.h"

namespace run {
namespace {

constexpr size_t kCaBundleBytesMax = 16 << 20;

std::string HostOf(const std::string& url) {
  Result<codec::RequestUrl> parsed = codec::ParseRequestUrl(url);
  return parsed.ok() ? std::move(parsed).value().host : "";
}

policy::ParseContext PolicyContext(const Request& request, const forge::Event& event,
                                   const Subject& subject) {
  policy::ParseContext context;
  context.agent_name = request.agent;
  context.hosted_tools = subject.config.hosted_tools;
  context.after_untrusted = subject.config.after_untrusted;
  context.model_hosts = [hosts = ModelHostsOf(subject.description(), request)](const std::string&) {
    return hosts;
  };
  std::string host = HostOf(event.server_url);
  if (host.empty() && subject.checkout.repository) {
    host = HostOf(subject.checkout.repository->OriginUrl());
  }
  if (!host.empty()) context.forge_host = host;
  return context;
}

Result<agent::AgentPlan> PlanRunAgent(
    const Request& request, const Subject& subject, const AgentProgram& program,
    const policy::Policy& policy,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  agent::AgentRequest wanted;
  wanted.prompt = request.prompt;
  wanted.model = request.model;
  wanted.command = request.command;
  wanted.providers = ProviderNames(request);
  wanted.searches = std::ranges::find(policy.hosted_tools, policy::kWebSearch,
                                      &policy::HostedAllowance::kind) != policy.hosted_tools.end();
  wanted.environment = environment;
  wanted.environment.insert(wanted.environment.end(), request.env.begin(), request.env.end());
  if (!subject.described) return agent::PlanCommand(wanted);
  wanted.executable = program.path;
  return agent::PlanAgent(*subject.described, wanted);
}

Result<std::string> ReadCaBundle(const Request& request) {
  if (!request.ca_file.empty()) return ReadNamedFile(request.ca_file, kCaBundleBytesMax);
  Result<std::string> system = net::SystemCaBundle();
  // A host without one trusts nobody: the gateway then refuses every TLS upstream.
  if (!system.ok()) return std::string();
  return sys::ReadFile(system.value(), kCaBundleBytesMax);
}

// The version of an agent's package on the host, and whether it is one that was tried.
std::string LookAtVersion(const Subject& subject, const Tools& tools) {
  if (tools.image || !subject.described || tools.program.path.empty()) return "";
  const std::string version = agent::PackageVersion(tools.program.path);
  const agent::AgentDescription& known = *subject.described;
  if (!agent::IsTried(version, known.tried)) {
    logging::Warn("this version of the agent was not tried",
                  {{"agent", known.name}, {"version", version}, {"tried", known.tried}});
  }
  return version;
}

// Returns the error for a run of which it is not known who started it: nothing is assumed then.
Error NoPolicyFor(const forge::Event& event, const TrustedRef& ref) {
  return {Code::kSetup,
          event.unread_ci + " is set, and there is no " + kPolicyPath + " at " + ref.ref,
          "--policy FILE"};
}

// A run that will be refused is refused before an image is fetched, as far as can be known by then:
// the image's programs and policy are not known yet.
Status CheckBeforeStart(const Request& request, const Trust& trust,
                        const policy::ParseContext& context, const PolicySource& source,
                        const Subject& subject) {
  LoadedPolicy policy = TRY(LoadPolicy(source, context, nullptr));
  TRY(CheckCredentials(request, trust, policy.parsed.policy, policy.file));
  if (!subject.described) return Ok();  // The image may have a command.
  TRY(PlanRunAgent(request, subject, {}, policy.parsed.policy, ForeseenVariables(request)));
  return Ok();
}

// Fetches the image, checked against `config`, whose trust the request may replace.
Result<RunImage> PullRunImage(const Request& request, const std::string& top, Config* config,
                              Recorder& recorder) {
  RunImage image = TRY(PrepareImage(request, top, config).Context("preparing the image"));
  recorder.Note(Record(image));
  // Once, when it is unpacked; run.json has them of every run.
  if (image.pulled.unpacked.fresh) {
    for (const std::string& warning : image.warnings) {
      logging::Warn("the image differs from its description", {{"what", warning}});
    }
  }
  recorder.Phase("image");
  return image;
}

// The policy, without the ecosystems.
Result<Rules> OpenPolicy(const Request& request, policy::ParseContext context, PolicySource source,
                         const Tools& tools) {
  Rules rules;
  rules.policy_context = std::move(context);
  rules.policy = TRY(LoadPolicy(std::move(source), rules.policy_context, tools.in_image()));
  // Another place resolves programs by itself.
  if (request.backend.local) AddResolvedBinaries(tools.in_image(), &rules.policy.parsed.policy);
  return rules;
}

// The registries of the configured ecosystems, for the agent and what it starts.
Result<std::vector<policy::NetworkPolicy>> OpenEcosystems(const Request& request,
                                                          const Subject& subject,
                                                          const Tools& tools) {
  if (subject.config.ecosystems.empty()) return std::vector<policy::NetworkPolicy>();
  if (tools.in_image() == nullptr && TRY(ChangesSystem(subject.config.ecosystems))) {
    return Error{Code::kUnsupported,
                 "the ecosystem 'debian' installs packages into the system, which only a sandbox "
                 "of its own image lets the agent change",
                 "--image HOST/REPOSITORY@sha256:DIGEST, or on a laptop --image dir:DIRECTORY"};
  }
  EcosystemRequest wanted;
  wanted.names = subject.config.ecosystems;
  wanted.image = tools.in_image();
  wanted.limits = request;
  wanted.repository = subject.checkout.git();
  wanted.checkout = subject.checkout.path;
  wanted.ref = subject.ref;
  wanted.ca_file = request.ca_file;
  policy::Policy opened;
  TRY(AddEcosystems(wanted, &opened));
  return std::move(opened.network);
}

// The policy of the task's checks, with the run's ecosystems; nullopt if they have none.
Result<std::optional<LoadedPolicy>> LoadCheckPolicy(const Subject& subject, const Tools& tools,
                                                    const Rules& rules) {
  if (subject.checks.policy_file.empty()) return std::optional<LoadedPolicy>();
  PolicySource source;
  source.text = subject.checks.policy;
  source.file = subject.checks.policy_file;
  source.record.source = "repository";
  source.record.path = source.file;
  source.record.ref = subject.ref.ref;
  source.record.commit = rules.policy.record.commit;
  LoadedPolicy loaded = TRY(LoadPolicy(std::move(source), rules.policy_context, tools.in_image()));
  AddNetwork(rules.ecosystems, &loaded.parsed.policy);
  TRY(CheckCountable(loaded, subject.budget));
  return std::optional(std::move(loaded));
}

// All that the agent, and the task's checks, may reach.
Result<Rules> MakeRules(const Request& request, const Trust& trust, const Subject& subject,
                        const Tools& tools, policy::ParseContext context, PolicySource source,
                        Recorder& recorder) {
  Rules rules = TRY(OpenPolicy(request, std::move(context), std::move(source), tools));
  recorder.Note(rules.policy.record);
  recorder.NoteConfig(subject.config.sha256);
  TRY(CheckCountable(rules.policy, subject.budget));
  rules.ecosystems = TRY(OpenEcosystems(request, subject, tools).Context("opening the ecosystems"));
  AddNetwork(rules.ecosystems, &rules.policy.parsed.policy);
  rules.check_policy = TRY(LoadCheckPolicy(subject, tools, rules));
  if (trust.model) {
    rules.only_reads = true;
    CloseWrites(request, &rules.policy.parsed.policy);
    if (rules.check_policy) CloseWrites(request, &rules.check_policy->parsed.policy);
  }
  return rules;
}

// Before the agent starts: a file that cannot be written to costs no run.
Result<std::optional<LearnFile>> OpenLearnFile(const Request& request, const std::string& top,
                                               const RunCredentials& credentials) {
  if (request.learn.empty() || request.plan_only) return std::optional<LearnFile>();
  std::vector<advise::BoundSecret> secrets;
  for (const gateway::BoundSecret& secret : credentials.secrets) {
    secrets.push_back({secret.name, secret.host});
  }
  return std::optional(TRY(LearnFile::Open(request.learn, top, std::move(secrets))));
}

// Replaces instruction files by those of the trusted commit.
Status ReplaceInstructions(const Subject& subject, Shown* shown) {
  shown->replaced =
      TRY(FindBaseInstructions(subject.checkout.git(), subject.checkout.path, subject.ref)
              .Context("reading the agent instructions"));
  if (shown->replaced.empty()) return Ok();
  logging::Info(
      "agent instructions are read from the trusted commit",
      {{"first", shown->replaced.front().path}, {"files", std::to_string(shown->replaced.size())}});
  for (const sandbox::WorkspaceFile& file : shown->replaced) {
    shown->notes.push_back(file.path + ": as at " + subject.ref.ref + " for the agent" +
                           (file.gone ? ", where there is none" : ""));
  }
  return Ok();
}

// Returns those of the files that lie in the checkout (canonical), relative to it.
std::set<std::string> FilesWithin(const std::string& checkout,
                                  const std::vector<std::string>& files) {
  std::set<std::string> within;
  for (const std::string& file : files) {
    const Result<std::string> real = sys::RealPath(file);
    if (real.ok() && real.value().starts_with(checkout + "/")) {
      within.insert(real.value().substr(checkout.size() + 1));
    }
  }
  return within;
}

// Takes away the credentials that earlier steps left in the checkout, and this run's own: the files
// `own`. Notes each file.
Status WithholdCredentials(const Request& request, const Checkout& checkout,
                           const std::vector<std::string>& own, Recorder& recorder, Shown* shown) {
  Result<std::string> report = sys::RealPath(request.report_dir);
  LeftFiles left = TRY(FindLeftFiles(checkout.path, report.ok() ? report.value() : ""));
  shown->foreign = codec::NeutralLine(left.foreign);
  shown->git = TRY(FindGitFiles(checkout.path, left.repositories));
  std::set<std::string> paths(left.credentials.begin(), left.credentials.end());
  paths.insert(shown->git.included.begin(), shown->git.included.end());
  for (const sandbox::WorkspaceFile& file : shown->replaced) paths.erase(file.path);
  size_t noted = 0;
  const auto withhold = [&](sandbox::WorkspaceFile file, const char* what) {
    shown->notes.push_back(file.path + ": " + what);
    if (noted++ < kWithheldNotesMax) recorder.NoteAbout(file.path, kWithheldRule, what);
    shown->replaced.push_back(std::move(file));
  };
  for (const std::string& path : FilesWithin(checkout.path, own)) {
    paths.erase(path);
    std::erase_if(shown->replaced, [&](const auto& file) { return file.path == path; });
    withhold({path, {}, true}, "not given to the agent: it is a credential of this run");
  }
  for (sandbox::WorkspaceFile& file :
       WithholdFiles(checkout.git(), checkout.path, {paths.begin(), paths.end()})) {
    const char* what = file.gone
                           ? "not given to the agent: it may hold credentials, and no commit has it"
                           : "as in HEAD for the agent: what it holds by now may be credentials";
    withhold(std::move(file), what);
  }
  shown->replaced.insert(shown->replaced.end(), shown->git.nested.begin(), shown->git.nested.end());
  return Ok();
}

// In tier landlock the agent has a copy at another path: the scripts of a Python environment lead
// to the checkout's own, which nothing there may read.
void NoteEnvironments(const Request& request, const std::string& checkout, Recorder& recorder,
                      std::vector<std::string>* notes) {
  if (request.isolation != sandbox::Isolation::kLandlock) return;
  for (const std::string name : {".venv", "venv"}) {
    if (!sys::Exists(checkout + "/" + name + "/pyvenv.cfg")) continue;
    const std::string what =
        "its scripts and activate name the checkout's own path, which tier landlock " +
        ("does not show; what works there: " + name) + "/bin/python -m MODULE, or uv sync";
    notes->push_back(name + ": " + what);
    recorder.NoteAbout(name, "moved-environment", what);
  }
}

// Notes the proxy that the agent's connections leave through, if there is one.
Status NoteEgressProxy(Recorder& recorder, std::vector<std::string>* notes) {
  std::optional<gateway::EgressProxy> proxy =
      TRY(HostEgressProxy().Context("reading the proxy of this machine"));
  if (!proxy) return Ok();
  notes->push_back("connections leave through the proxy " + proxy->Shown() +
                   (proxy->by_name() ? ", which resolves their names" : ""));
  recorder.Note(*proxy);
  return Ok();
}

Result<Shown> ShowCheckout(const Request& request, const Subject& subject,
                           const RunCredentials& credentials, Recorder& recorder) {
  Shown shown;
  TRY(ReplaceInstructions(subject, &shown));
  TRY(WithholdCredentials(request, subject.checkout, credentials.files, recorder, &shown));
  NoteEnvironments(request, subject.checkout.path, recorder, &shown.notes);
  if (request.backend.local) TRY(NoteEgressProxy(recorder, &shown.notes));
  return shown;
}

Result<Plan> Prepare(const OptionRules& option_rules, Request* asked, Recorder& recorder) {
  auto [event, trust, admitted] = TRY(AdmitRun(option_rules, asked, recorder));
  Plan plan;
  Subject& subject = plan;
  Tools& tools = plan;
  subject = std::move(admitted);
  if (subject.config.budget.limits.any() && !asked->plan_only) {
    subject.allowance =
        TRY(Allowance::Open(*asked, event, subject.config, recorder, &subject.budget));
    recorder.Phase("budget");
  }
  Request request = *asked;
  TakeIdentities(subject.config, &request);
  TRY(CheckPrices(subject.description(), request, subject.config, subject.budget));
  TRY(FindEcosystems(subject.config.ecosystems));
  if (!request.prompt_file.empty()) {
    request.prompt = TRY(ReadPromptFile(request.prompt_file, subject.checkout.git(), subject.ref)
                             .Context("reading the prompt"));
  }
  if (!request.lasting) recorder.NotePrompt(request.prompt);  // No agent of it is asked yet.
  PolicySource source =
      TRY(FindPolicy(request, subject.checkout.git(), subject.checkout.path, subject.ref));
  if (!event.unread_ci.empty() && !source.text) return NoPolicyFor(event, subject.ref);
  policy::ParseContext context = PolicyContext(request, event, subject);
  if (!request.image.empty() && request.backend.local) {
    TRY(CheckBeforeStart(request, trust, context, source, subject));
    tools.image = TRY(PullRunImage(request, subject.checkout.top(), &subject.config, recorder));
    if (!subject.described && request.command.empty()) request.command = tools.image->command;
  }
  if (request.backend.local) {
    tools.program = TRY(FindAgent(subject.description(), request, tools.in_image()));
  }
  static_cast<Rules&>(plan) = TRY(
      MakeRules(request, trust, subject, tools, std::move(context), std::move(source), recorder));
  recorder.Phase("policy");

  plan.credentials =
      TRY(CollectCredentials(request, trust, plan.policy.parsed.policy, plan.policy.file));
  std::vector<std::string> names = NamesOf(plan.credentials);
  for (const std::string& held : request.gateway_providers) names.push_back(held + "@gateway");
  recorder.NoteCredentials(std::move(names));
  plan.learn = TRY(OpenLearnFile(request, subject.checkout.top(), plan.credentials));
  plan.agent = TRY(PlanRunAgent(request, subject, tools.program, plan.policy.parsed.policy,
                                plan.credentials.environment));
  recorder.NoteCommand(plan.agent.argv);
  recorder.NoteVersion(LookAtVersion(subject, tools));
  static_cast<Shown&>(plan) = TRY(ShowCheckout(request, subject, plan.credentials, recorder));
  if (plan.only_reads) {
    plan.notes.emplace_back("a fork's run: all endpoints but its model's are for reading only");
  }
  plan.ca_bundle_pem = TRY(ReadCaBundle(request).Context("reading the certificate bundle"));
  if (plan.policy.parsed.policy.after_untrusted.used()) {
    plan.untrusted = TRY(FindUntrustedTexts(event, plan.checkout.git(), plan.ref)
                             .Context("reading what strangers wrote"));
    for (const std::string& text : request.watched_texts) {
      plan.untrusted.texts.push_back({"a watched text", text});
    }
  }
  return plan;
}

}  // namespace

Result<ForeseenPolicy> ForeseePolicy(const OptionRules& option_rules, Request request) {
  const forge::Event event;  // A policy is asked about, not a run.
  OpenedConfig opened = TRY(OpenConfig(event, option_rules, request));
  ForeseenPolicy foreseen;
  const std::vector<Task>& tasks = opened.config.tasks;
  const bool named = !request.task.empty() || !request.given.empty();
  if (!named && !tasks.empty()) request.task = tasks.front().name;
  if (!named && tasks.size() > 1) {
    foreseen.notes.push_back("as in the task '" + request.task + "', the first of " +
                             std::to_string(tasks.size()) + "; --task NAME is for another");
  }
  request.given.emplace_back("prompt");  // What the agent is asked opens nothing.
  const Subject subject = TRY(TakeSubject(event, std::move(opened), option_rules, &request));
  PolicySource source =
      TRY(FindPolicy(request, subject.checkout.git(), subject.checkout.path, subject.ref));
  const Tools tools;
  Rules rules =
      TRY(OpenPolicy(request, PolicyContext(request, event, subject), std::move(source), tools));
  if (!request.image.empty()) {
    foreseen.notes.push_back("the image " + request.image +
                             " was not looked into: its programs and registries are not known");
  } else {
    Result<std::vector<policy::NetworkPolicy>> registries = OpenEcosystems(request, subject, tools);
    if (registries.ok()) {
      AddNetwork(registries.value(), &rules.policy.parsed.policy);
    } else {
      foreseen.notes.push_back("registries are not known here: " + registries.error().what);
    }
  }
  foreseen.policy = std::move(rules.policy);
  return foreseen;
}

Result<Plan> PrepareRun(const OptionRules& rules, Request* request, Recorder& recorder) {
  Result<Plan> plan = Prepare(rules, request, recorder);
  if (plan.ok()) return plan;
  return ForJob(std::move(plan).error());
}

}  // namespace run
