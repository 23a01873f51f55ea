// SPDX-License-Identifier: Apache-2.0
#include "cli/setup_command.h"

#include <algorithm>
#include <array>
#include <functional>

#include "agent/description.h"
#include "base/log.h"
#include "base/sys.h"
#include "cli/sandbox_command.h"
#include "codec/data/digest.h"
#include "forge/open/open.h"
#include "report/denials.h"
#include "report/terminal/end_log.h"
#include "run/prepare.h"
#include "run/trusted/prompt_file.h"
#include "run/trusted/trust.h"
#include "session/agent_run.h"

namespace cli {
namespace {

constexpr std::string_view kSetupDoc =
    "Start one sandbox for several steps of a CI job. Prints its name. Later steps use it with "
    "`run --sandbox NAME` and `exec`, and see what earlier ones left; `stop` writes the report.";
constexpr std::string_view kExecDoc =
    "Run PROGRAM in the sandbox that `setup` started. It is found by the path of the checkout, or "
    "by --name. Without PROGRAM, the shell in the sandbox runs the script on standard input. "
    "Otherwise like `sandbox exec`.";
constexpr std::string_view kStopDoc =
    "End the sandbox of `setup` and write its report. It is found by the path of the "
    "checkout, or by --name. "
    "Otherwise like `sandbox delete`. Exit status 66 if no such sandbox exists.";

constexpr OptionSpec kName = {"name", "NAME", "",
                              "The sandbox's name. If not given, it is made from the path of the "
                              "checkout."};
constexpr OptionSpec kWorkdir = {"workdir", "DIR", ".",
                                 "The checkout given to `setup`, or a directory in it."};

// Two jobs on one machine have two checkouts.
std::string NameFor(const std::string& checkout) {
  constexpr size_t kDigits = 12;
  return "setup-" + codec::Sha256Hex(checkout).substr(0, kDigits);
}

Result<std::string> NameOf(const Arguments& arguments) {
  if (arguments.Has("name")) return arguments.Get("name");
  return NameFor(TRY(sys::RealPath(arguments.Get("workdir", "."))));
}

// Returns the name of the sandbox that there is for a directory or for one above it; the name that
// `setup` gives it there, if there is none.
Result<std::string> FindNameOf(const Arguments& arguments) {
  const std::string own = TRY(NameOf(arguments));
  if (arguments.Has("name")) return own;
  session::Place place = TRY(session::Place::Open());
  std::string path = TRY(sys::RealPath(arguments.Get("workdir", ".")));
  for (; !path.empty(); path.erase(path.rfind('/'))) {
    if (place.Find(NameFor(path)).ok()) return NameFor(path);
  }
  return own;
}

Status RefuseOperands(const Arguments& arguments, const std::string& command) {
  if (arguments.operands.empty()) return Ok();
  return Usage("unexpected '" + arguments.operands.front() + "'",
               "agentic-ci " + command + " -- " + arguments.operands.front());
}

// A built-in agent, or one of the configuration of the checkout that the sandbox is for.
Result<std::optional<agent::AgentDescription>> DescribeIn(const std::string& sandbox,
                                                          const std::string& agent_name) {
  auto built_in = agent::DescribeAgent(agent_name);
  if (built_in.ok()) return built_in;
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(sandbox));
  run::Request request;
  request.workdir = facts.workdir;
  request.policy_ref = facts.policy_ref;
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  run::OpenedConfig opened = TRY(run::OpenConfig(event, TaskOptionRules(), request));
  return agent::DescribeAgent(agent_name, opened.config.agents);
}

// Returns the prompt in the file of --prompt-file, which may be in the trusted commit of that
// checkout.
Result<std::string> ReadPromptIn(const std::string& sandbox, const std::string& file) {
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(sandbox));
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  run::Checkout checkout = TRY(run::OpenCheckout(facts.workdir).Context("opening the checkout"));
  run::TrustedRef ref = TRY(run::FindTrustedRef(event, facts.policy_ref));
  return run::ReadPromptFile(file, checkout.git(), ref).Context("reading the prompt");
}

// Takes a step in a sandbox, and then logs the requests that were refused meanwhile.
Result<int> TakeStep(const std::string& sandbox, const std::function<Result<int>()>& step) {
  session::Place place = TRY(session::Place::Open());
  const session::Facts facts = TRY(place.Find(sandbox));
  const int64_t from = report::EventBytes(facts.report_dir);
  Result<int> ended = step();
  Result<report::DenialList> refused = report::ReadDenials(facts.report_dir, from);
  if (refused.ok()) {
    report::LogRefusals(refused.value().denials, refused.value().dropped, facts.report_dir);
  } else {
    logging::Warn("what was refused cannot be shown", {{"why", refused.error().what}});
  }
  return ended;
}

}  // namespace

std::vector<Command> SetupCommands() {
  Command setup =
      SandboxCreation("setup", SetupCommand, kSetupDoc, "  agentic-ci setup --agent claude-code\n");
  setup.options.front() = kName;
  Command exec{.name = "exec",
               .carry_out = ExecCommand,
               .operands = "[-- PROGRAM ARG...]",
               .doc = kExecDoc,
               .example = "  agentic-ci exec -- make test\n  agentic-ci exec < build.sh\n",
               .options = {kName, kWorkdir}};
  Command stop{.name = "stop",
               .carry_out = StopCommand,
               .operands = "",
               .doc = kStopDoc,
               .example = "  agentic-ci stop --apply\n",
               .options = {kName, kWorkdir}};
  for (const Command& command : SandboxCommands()) {
    Command* like = command.name == "sandbox exec"     ? &exec
                    : command.name == "sandbox delete" ? &stop
                                                       : nullptr;
    if (like == nullptr) continue;
    for (const OptionSpec& option : command.options) {
      // A sandbox on a gateway has no checkout here.
      if (option.name == "backend" || option.name.starts_with("gateway")) continue;
      like->options.push_back(option);
    }
  }
  return {setup, exec, stop};
}

Result<int> SetupCommand(const Arguments& arguments) {
  return CreateSandbox(arguments, TRY(NameOf(arguments)));
}

Result<int> ExecCommand(const Arguments& arguments) {
  TRY(RefuseOperands(arguments, "exec"));
  const std::string name = TRY(FindNameOf(arguments));
  if (arguments.Has("json")) return ExecInSandbox(arguments, name);
  return TakeStep(name, [&] { return ExecInSandbox(arguments, name); });
}

Result<int> StopCommand(const Arguments& arguments) {
  TRY(RefuseOperands(arguments, "stop"));
  return DeleteSandbox(arguments, TRY(FindNameOf(arguments)));
}

Result<int> RunInSandbox(const Arguments& arguments, const run::Request& request) {
  constexpr auto kGiven = std::to_array<std::string_view>(
      {"sandbox", "agent", "prompt", "prompt-file", "model", "timeout"});
  for (const auto& [name, values] : arguments.values) {
    if (std::find(kGiven.begin(), kGiven.end(), name) != kGiven.end()) continue;
    const bool of_setup = std::any_of(kRunOptions.begin(), kRunOptions.end(),
                                      [&](const auto& option) { return option.spec.name == name; });
    if (!of_setup) return Usage("--" + name + " is for a run with a sandbox of its own");
    return Usage("--" + name +
                     " is decided when the sandbox is created, and cannot be given with "
                     "--sandbox",
                 "agentic-ci setup --" + name + " ...");
  }
  const std::string name = arguments.Get("sandbox");
  const NamedSandbox sandbox = TRY(FindSandbox(name));
  auto described = TRY(DescribeIn(name, request.agent));
  run::Request wanted = request;
  if (!arguments.Has("timeout")) wanted.timeout_s = 0;
  if (!request.prompt_file.empty()) {
    wanted.prompt = TRY(ReadPromptIn(name, request.prompt_file));
  }
  auto run = [&](std::string_view script, const session::ExecRequest& exec,
                 const session::Sink& sink) { return sandbox.Exec(script, exec, sink); };
  const session::Facts facts = TRY(sandbox.place.Find(name));
  return TakeStep(name, [&] {
    return session::RunAgent(run, described ? &*described : nullptr, wanted, facts);
  });
}

}  // namespace cli
