// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/named_path.h"
#include "base/sys.h"
#include "cli/eval_command.h"
#include "cli/output.h"
#include "eval/redteam/hostile_agent.h"
#include "eval/redteam/redteam.h"
#include "eval/redteam/redteam_text.h"
#include "run/policy_source.h"
#include "run/report_directory.h"
#include "run/run.h"

namespace cli {
namespace {

constexpr std::string_view kRedteamDoc =
    "Attack this host's sandbox with a scripted hostile agent. It tries to escape, to send data "
    "out and to find credentials, under a policy. Shows what was stopped, and what each line of "
    "the policy lets an agent do. It needs no model, and nothing leaves the machine. Without "
    "`policy`, the repository's is taken as it is in the working tree. Exit status 77: something "
    "got through that neither the policy nor the tier allows, or an attempt is undecided.";

// Options of `run` that a red team's run takes as they are; the policy and the checkout it needs
// itself.
bool RedteamTakes(std::string_view option) {
  constexpr auto kPassed = std::to_array<std::string_view>(
      {"image", "image-key", "image-identity", "image-issuer", "image-bundle", "trusted-root",
       "insecure-registry", "ca-file", "isolation", "secret", "env"});
  const sandbox::LimitRow* limit = sandbox::FindLimit(option, &sandbox::LimitRow::option);
  return limit != nullptr ? limit->redteam : IsIn(kPassed, option);
}
constexpr auto kRedteamOwn = std::to_array<std::string_view>({"policy", "workdir"});

// VARIABLE of NAME[=VARIABLE]@HOST.
std::string VariableOf(std::string_view secret) {
  secret = secret.substr(0, secret.rfind('@'));
  size_t equals = secret.find('=');
  return std::string(equals == std::string_view::npos ? secret : secret.substr(equals + 1));
}

Result<redteam::Plan> RedteamPlanOf(const Arguments& arguments) {
  redteam::Plan plan;
  plan.policy =
      arguments.Has("policy") ? arguments.Get("policy") : FindRepositoryFile(run::kPolicyPath);
  if (!plan.policy.empty()) plan.policy = TRY(AbsoluteOf(plan.policy));
  plan.agent = arguments.Get("agent", "command");
  plan.workdir = TRY(AbsoluteOf(arguments.Get("workdir", ".")));
  plan.in_image = arguments.Has("image");
  if (arguments.Has("report-dir")) {
    // Sets an earlier report aside, so that it is not read as this run's.
    plan.report = TRY(run::ReportDirectory::Prepare(arguments.Get("report-dir"))).path;
  }
  for (const RunOption& option : kRunOptions) {
    const std::string name(option.spec.name);
    if (!RedteamTakes(name)) continue;
    for (const std::string& value : arguments.All(name)) {
      plan.options.insert(plan.options.end(), {"--" + name, value});
      if (name == "secret") plan.credentials.push_back(VariableOf(value));
    }
  }
  plan.environment = CellEnvironment({});
  plan.search_path = sys::Environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  return plan;
}

std::vector<OptionSpec> RedteamOptions() {
  std::vector<OptionSpec> options = {
      {"agent", "NAME", "command",
       "The agent the policy is for; determines the model host of `defaults: minimal`."},
      {"report-dir", "DIR", "", "Keep the report of the run here."}};
  for (const RunOption& option : kRunOptions) {
    std::string_view name = option.spec.name;
    if (RedteamTakes(name) || IsIn(kRedteamOwn, name)) options.push_back(option.spec);
  }
  options.push_back(kJsonOption);
  return options;
}

}  // namespace

std::vector<Command> RedteamCommands() {
  return {
      {.name = "eval redteam",
       .carry_out = EvalRedteamCommand,
       .operands = "",
       .doc = kRedteamDoc,
       .example = "  agentic-ci eval redteam\n  agentic-ci eval redteam --policy "
                  ".agentic-ci/openshell-policy.yml --json\n",
       .options = RedteamOptions(),
       .variables = {{"PATH and all other variables",
                      "Passed on to the run, except those of this process's own CI event and the "
                      "values of `secret`, which a canary replaces."},
                     {"TMPDIR", "Where the bait is laid. It must be outside the checkout."}}},
      {.name = "eval redteam-agent",
       .carry_out = EvalRedteamAgentCommand,
       .operands = "TARGETS",
       .doc = "Started by `eval redteam` as its agent.",
       .hidden = true},
  };
}

Result<int> EvalRedteamCommand(const Arguments& arguments) {
  if (!arguments.operands.empty() || !arguments.command.empty()) {
    return Usage("eval redteam takes no operands", "agentic-ci eval redteam --policy FILE");
  }
  redteam::Plan plan = TRY(RedteamPlanOf(arguments));
  redteam::Results results = TRY(redteam::RunRedteam(plan));
  TRY(arguments.Has("json") ? Print(codec::RenderJson(redteam::ToJson(results)))
                            : PrintLines(redteam::RenderRedteam(results)));
  if (redteam::Holds(results)) return 0;
  return Error{Code::kRefused,
               std::to_string(redteam::Count(results, redteam::Standing::kThrough)) +
                   " attempts got through, and " +
                   std::to_string(redteam::Count(results, redteam::Standing::kUndecided)) +
                   " were not decided"};
}

Result<int> EvalRedteamAgentCommand(const Arguments& arguments) {
  redteam::Targets targets =
      TRY(redteam::ParseTargets(arguments.operands.empty() ? "" : arguments.operands.front()));
  TRY(redteam::TryEverything(targets));
  return 0;
}

}  // namespace cli
