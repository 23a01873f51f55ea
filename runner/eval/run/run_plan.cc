// SPDX-License-Identifier: Apache-2.0
#include "eval/run/run_plan.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "base/version.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/data/yaml_fields.h"
#include "eval/evidence/remote_record.h"
#include "eval/run/cell.h"
#include "net/url.h"
#include "sandbox/limit/limit.h"

namespace eval {
namespace {

constexpr char kOwnGateway[] = "own";  // The value of `--gateway` for one of the run's own.

constexpr size_t kFileBytesMax = size_t{64} << 20;

// Those of `run`, besides its limits, that a cell takes as they are.
constexpr auto kTaken = std::to_array<std::string_view>(
    {"agent", "model", "policy", "image", "image-key", "image-identity", "image-issuer",
     "image-bundle", "trusted-root", "insecure-registry", "ca-file", "isolation", "secret",
     "provider", "env", "backend", "gateway", "gateway-tls", "gateway-provider"});

// Options that differ between machines and change nothing for the agent.
constexpr auto kLocal = std::to_array<std::string_view>({"ca-file", "gateway", "gateway-tls"});

// What an agent that runs elsewhere takes.
constexpr auto kOfRemote = std::to_array<std::string_view>({"model", "ca-file", "timeout"});

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// An evaluation may be resumed with more of these.
bool IsAllowance(std::string_view option) {
  const sandbox::LimitRow* limit = sandbox::FindLimit(option, &sandbox::LimitRow::option);
  return limit != nullptr && limit->allowance;
}

// Returns the value of an option that is given at most once, or `fallback`.
std::string ValueOf(const CellRequest& request, std::string_view name, std::string fallback = {}) {
  auto found = std::find_if(request.options.begin(), request.options.end(),
                            [&](const GivenOption& option) { return option.name == name; });
  return found == request.options.end() ? fallback : found->value;
}

// The suite's own agent runs with what it needs, or not at all.
Status CheckNeeds(const CellRequest& request, const Suite& suite) {
  for (const AgentNeed& need : suite.environment.needs) {
    const bool has = std::any_of(need.options.begin(), need.options.end(),
                                 [&](auto option) { return !ValueOf(request, option).empty(); });
    if (has) continue;
    return codec::InvalidAt(
        suite.file, need.at,
        "the suite's agent needs " + need.what + ", which is not taken from it",
        "--" + std::string(need.options.front()) + ", or -- PROGRAM for another agent");
  }
  return Ok();
}

// Passes on the model's host, on which it depends what counts as sent.
void PassModelHost(const CellRequest& request, const Suite& suite, RunPlan* plan) {
  if (!request.model_host.empty()) {
    plan->options.insert(plan->options.end(), {"--model-host", request.model_host});
  } else if (plan->native && !plan->names_agent && !SentTextsOf(suite).empty()) {
    logging::Warn("what the command asks its model counts as sent, since the model is not known",
                  {{"say", "--model-host HOST"}});
  }
}

// The digest of all that decides what an agent meets in a cell, besides the machine and the budget.
// Options are taken as they are spelled.
Result<Setup> SetupOf(const CellRequest& request, const Suite& suite) {
  codec::Json payloads = codec::Json::EmptyArray();
  for (const InjectionTask& task : suite.injection_tasks) {
    for (const Probe& probe : task.probes) payloads.Push(probe.payload);
  }
  codec::Json options = codec::Json::EmptyArray();
  for (const GivenOption& option : request.options) {
    if (IsIn(kLocal, option.name) || IsAllowance(option.name)) continue;
    std::string value = option.value;
    if (option.is_file) {
      value =
          codec::Sha256Hex(TRY(ReadNamedFile(value, kFileBytesMax).Context("reading " + value)));
    }
    options.Push(option.name + "=" + value);
  }
  codec::Json all;
  all.Set("tool_version", kVersion)
      .Set("suite_sha256", suite.sha256)
      .Set("payloads", std::move(payloads))
      .Set("options", std::move(options))
      .Set("model_host", request.model_host)
      .Set("command", codec::Json::FromStrings(request.command));
  if (request.remote) {
    const RemoteAgent& agent = request.remote->agent;
    codec::Json headers = codec::Json::EmptyArray();
    for (const AgentHeader& header : agent.headers) headers.Push(header.name);
    const std::string protocol(Render(agent.protocol));
    all.Set("url", agent.url.text)
        .Set("protocol", protocol)
        .Set("headers", std::move(headers))
        .Set("tools_announced", request.remote->tools.path.empty());
    return Setup{protocol + " " + net::ShownUrl(agent.url.text), ValueOf(request, "model"),
                 codec::Sha256Hex(codec::RenderJsonLine(all))};
  }
  return Setup{ValueOf(request, "agent", "command"), ValueOf(request, "model"),
               codec::Sha256Hex(codec::RenderJsonLine(all))};
}

// Plans cells whose agent runs elsewhere.
Result<RunPlan> PlanRemoteRuns(CellRequest request, const Suite& suite) {
  const Environment& environment = suite.environment;
  if (environment.backend != Backend::kDict) {
    return Error{Code::kUsage,
                 suite.file + ": an agent behind a URL cannot reach the files of this suite",
                 "agentic-ci eval run SUITE -- PROGRAM"};
  }
  for (const GivenOption& option : request.options) {
    if (IsIn(kOfRemote, option.name)) continue;
    return Error{Code::kUsage, "--" + option.name + " has no effect on an agent behind a URL"};
  }
  if (!request.command.empty() || !request.model_host.empty()) {
    return Error{Code::kUsage,
                 "--agent-url: the agent behind the URL is neither a PROGRAM nor asks "
                 "its model here"};
  }
  if (!environment.policy.empty() || !environment.variables.empty()) {
    logging::Warn("the suite's policy and variables have no effect on an agent behind a URL");
  }
  logging::Warn("checks of what only a sandbox records are unknown: the agent runs elsewhere",
                {{"absent", kSandboxChannels}});
  RunPlan plan;
  plan.native = false;
  plan.setup = TRY(SetupOf(request, suite));
  plan.remote = std::move(request.remote);
  plan.remote->agent.ca_file = ValueOf(request, "ca-file");
  return plan;
}

}  // namespace

bool TakenByCells(std::string_view option) {
  return IsIn(kTaken, option) || sandbox::FindLimit(option, &sandbox::LimitRow::option) != nullptr;
}

Result<RunPlan> PlanRuns(CellRequest request, const Suite& suite) {
  if (request.remote) return PlanRemoteRuns(std::move(request), suite);
  RunPlan plan;
  plan.command = request.command;
  plan.names_agent = ValueOf(request, "agent", "command") != "command";
  plan.names_policy = !ValueOf(request, "policy").empty();
  if (!plan.names_agent && plan.command.empty() && suite.environment.agent_command.empty()) {
    return Error{Code::kUsage, "no agent: the suite names none",
                 "agentic-ci eval run SUITE --agent claude-code"};
  }
  if (!plan.names_agent && plan.command.empty()) TRY(CheckNeeds(request, suite));
  const bool dict = suite.environment.backend == Backend::kDict;
  plan.native = ValueOf(request, "backend", "native") == "native";
  // Fake tools are served on this machine, which other gateways need not reach.
  if (dict && !plan.native) {
    const std::string gateway = ValueOf(request, "gateway");
    if (!gateway.empty() && gateway != kOwnGateway) {
      return Error{Code::kUnsupported,
                   "the suite's fake tools are on this machine, and the sandbox has to be, too",
                   "--gateway own"};
    }
    if (gateway.empty()) plan.options = {"--gateway", kOwnGateway};
  }
  for (const GivenOption& option : request.options) {
    std::string value = option.value;
    if (option.is_file) value = TRY(sys::RealPath(value).Context("reading " + value));
    if (option.name == "policy" && dict) {
      plan.policy = TRY(ReadNamedFile(value, kFileBytesMax).Context("reading the policy"));
      continue;
    }
    plan.options.insert(plan.options.end(), {"--" + option.name, value});
  }
  PassModelHost(request, suite, &plan);
  plan.setup = TRY(SetupOf(request, suite));
  return plan;
}

}  // namespace eval
