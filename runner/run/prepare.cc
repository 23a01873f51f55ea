// SPDX-License-Identifier: Apache-2.0
#include "run/prepare.h"

#include "base/log.h"
#include "base/sys.h"
#include "forge/event.h"
#include "net/http_client.h"
#include "run/budget.h"
#include "run/registry_sources.h"
#include "run/trusted/trust.h"

namespace run {
namespace {

constexpr size_t kPromptBytesMax = 1 << 20;
constexpr size_t kCaBundleBytesMax = 16 << 20;

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

}  // namespace

sandbox::SandboxLimits LimitsOf(const Request& request) {
  return {request.memory_bytes, request.cpus, request.pids, request.disk_bytes};
}

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

}  // namespace run
