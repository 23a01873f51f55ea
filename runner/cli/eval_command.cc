// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/exit_code.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "cli/output.h"
#include "cli/run_command.h"
#include "codec/data/position.h"
#include "eval/run/cell_store.h"
#include "eval/run/grade_results.h"
#include "eval/run/merge_cells.h"
#include "eval/run/results_directory.h"
#include "eval/run/run_cells.h"
#include "eval/show/compare.h"
#include "eval/show/files.h"
#include "eval/show/gate.h"
#include "eval/show/text.h"
#include "eval/suite/payload_set.h"
#include "policy/load/parse.h"
#include "run/credentials.h"
#include "run/host_proxy.h"
#include "run/prepare.h"

namespace cli {
namespace {

constexpr size_t kResultsBytesMax = size_t{64} << 20;
constexpr uint32_t kJobsMax = 64;
constexpr uint32_t kLimitMax = 1000000;
constexpr char kOtherResults[] = "--results OTHER-DIRECTORY";

Result<uint32_t> NumberOf(const Arguments& arguments, std::string_view name, uint32_t fallback,
                          uint32_t least, uint32_t most) {
  if (!arguments.Has(name)) return fallback;
  std::string text = arguments.Get(name);
  uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    return Usage("--" + std::string(name) + ": '" + text + "' is not a number from " +
                 std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

Result<eval::Selection> SelectionOf(const Arguments& arguments) {
  eval::Selection selection;
  selection.users = arguments.All("user-task");
  selection.injections = arguments.All("injection-task");
  selection.trials = TRY(NumberOf(arguments, "trials", 0, 1, eval::kTrialsMax));
  const std::string shard = arguments.Get("shard", "1/1");
  if (!eval::ParseShard(shard, &selection)) {
    return Usage("--shard: '" + shard + "' is not I/N, such as 1/4", "--shard 1/4");
  }
  return selection;
}

Result<std::string> OperandOf(const Arguments& arguments, size_t index, size_t count,
                              std::string_view usage) {
  if (arguments.operands.size() == count) return arguments.operands[index];
  const size_t blank = usage.find(' ');
  return Usage(
      "eval " + std::string(usage.substr(0, blank)) + " takes" + std::string(usage.substr(blank)),
      "agentic-ci eval " + std::string(usage));
}

// The request of all cells, as far as `run` reads it from a command line.
Result<run::Request> RequestOf(const Arguments& arguments) {
  Arguments options = arguments;
  options.operands.clear();
  return ReadRequest(options);
}

// The suite may be a stranger's, with the policy and the agent that it names. A cell's run cannot
// know, since the event is not about it.
Status CheckTrust(const Arguments& arguments, const eval::Suite& suite) {
  run::Request request = TRY(RequestOf(arguments));
  for (const std::string& text : arguments.All("agent-header")) {
    const eval::AgentHeader header = TRY(eval::ParseAgentHeader(text));
    request.secrets.push_back({header.variable, header.variable, arguments.Get("agent-url")});
  }
  const run::Trust trust = TRY(run::FindTrust(TaskOptionRules(), request));
  if (arguments.Has("kubernetes")) {
    TRY(run::RefuseUntrusted(request, trust));  // The values are in the cluster.
  } else {
    TRY(run::CheckCredentials(request, trust, {}, ""));
  }
  if (trust.trusted) return Ok();
  if (arguments.Has("agent-url")) {
    return Error{Code::kRefused,
                 trust.reason + ", and such evaluations ask no agent outside of a sandbox",
                 trust.hint};
  }
  if (arguments.Has("env")) {
    return Error{Code::kRefused, trust.reason + ", and such evaluations get no variables: --env",
                 trust.hint};
  }
  // A run of a cell takes its checkout's configuration, which can open registries.
  for (const eval::SeedFile& file : suite.environment.files) {
    if (!file.path.starts_with(".agentic-ci/")) continue;
    return Error{
        Code::kRefused,
        trust.reason + ", and such evaluations take no configuration from a suite: " + file.path,
        trust.hint};
  }
  if (arguments.Has("policy")) return Ok();
  return Error{Code::kRefused, trust.reason + ", and such evaluations take no policy from a suite",
               "--policy FILE"};
}

// Returns how an agent that runs elsewhere is asked; nothing if the agent runs here.
Result<std::optional<eval::RemoteRun>> RemoteOf(const Arguments& arguments) {
  if (!arguments.Has("agent-url")) {
    for (const OptionSpec& option : RemoteOptions()) {
      if (!arguments.Has(option.name)) continue;
      return Usage("--" + std::string(option.name) + " needs --agent-url", "--agent-url URL");
    }
    return std::optional<eval::RemoteRun>();
  }
  eval::RemoteOptions options;
  options.url = arguments.Get("agent-url");
  options.protocol = arguments.Get("agent-protocol", "http");
  options.headers = arguments.All("agent-header");
  options.plain_http = arguments.Has("agent-plain-http");
  options.tools_listen = arguments.Get("tools-listen");
  options.tools_url = arguments.Get("tools-url");
  options.jobs = TRY(NumberOf(arguments, "jobs", 1, 1, kJobsMax));
  eval::RemoteRun remote = TRY(eval::ParseRemoteRun(options));
  remote.agent.timeout_s = TRY(RequestOf(arguments)).timeout_s;
  remote.agent.proxy = run::HostProxy();
  return std::optional(std::move(remote));
}

// Takes the values of headers out of this process's environment.
Status TakeHeaderValues(eval::RemoteAgent* agent) {
  for (eval::AgentHeader& header : agent->headers) {
    Secret value = sys::EnvironmentSecret(header.variable);
    TRY(eval::TakeHeaderValue(std::move(value), &header, &agent->mask));
  }
  return Ok();
}

Result<eval::RunPlan> PlanCellRuns(const Arguments& arguments, const eval::Suite& suite) {
  eval::CellRequest request;
  request.command = arguments.command;
  request.model_host = arguments.Get(kModelHostOption.name);
  for (const RunOption& option : kRunOptions) {
    if (!eval::TakenByCells(option.spec.name)) continue;
    for (const std::string& value : arguments.All(option.spec.name)) {
      request.options.push_back(
          {std::string(option.spec.name), value, option.spec.value == "FILE"});
    }
  }
  request.remote = TRY(RemoteOf(arguments));
  eval::RunPlan plan = TRY(eval::PlanRuns(std::move(request), suite));
  plan.environment = CellEnvironment(run::CredentialVariables(TRY(RequestOf(arguments))));
  plan.search_path = sys::Environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  return plan;
}

Result<eval::Gate> GateOf(const Arguments& arguments) {
  eval::Gate gate;
  gate.succeeded_max = TRY(NumberOf(arguments, "max-succeeded", 0, 0, kLimitMax));
  gate.undecided_max = TRY(NumberOf(arguments, "max-undecided", 0, 0, kLimitMax));
  return gate;
}

Result<int> Show(const Arguments& arguments, const eval::Gate& gate, const eval::Results& results,
                 const std::string& directory) {
  TRY(eval::WriteResults(directory, results));
  if (arguments.Has("json")) {
    TRY(Print(codec::RenderJson(eval::ToJson(results))));
  } else {
    TRY(PrintLines(eval::RenderTable(results)));
  }
  TRY(eval::JudgeBy(gate, results));
  return 0;
}

Result<codec::Json> ReadEvaluation(const std::string& path) {
  std::string file = path.ends_with(".json") ? path : path + "/eval.json";
  std::string text = TRY(ReadNamedFile(file, kResultsBytesMax).Context("reading " + file));
  return codec::ParseJson(text, {.bytes_max = kResultsBytesMax, .values_max = 5000000})
      .Context(file);
}

eval::SuiteSources SourcesOf(const Arguments& arguments) {
  return {arguments.Get("tools"), arguments.Get("payloads")};
}

// Reads a suite of which cells will run: its policy must be one, too.
Result<eval::Suite> ReadSuite(const Arguments& arguments, const std::string& file) {
  eval::Suite suite = TRY(eval::LoadSuite(file, SourcesOf(arguments)));
  const std::string& text = suite.environment.policy;
  if (!text.empty()) TRY(policy::ParsePolicy(text, {.file = file + " (its policy, as JSON)"}));
  return suite;
}

}  // namespace

Result<int> EvalValidateCommand(const Arguments& arguments) {
  if (arguments.operands.empty())
    return Usage("a suite is missing", "agentic-ci eval validate SUITE");
  std::optional<Error> first;
  for (const std::string& file : arguments.operands) {
    Result<eval::Suite> suite = ReadSuite(arguments, file);
    if (!suite.ok()) {
      if (first) TRY(sys::WriteAll(STDERR_FILENO, RenderError(*first)));
      first = suite.error();
      continue;
    }
    TRY(PrintLines(eval::RenderWarnings(suite.value()) + codec::Locate(file, {}) +
                   ": ok: " + std::to_string(suite.value().user_tasks.size()) + " user tasks, " +
                   std::to_string(suite.value().injection_tasks.size()) + " injection tasks"));
  }
  if (first) return *first;
  return 0;
}

namespace {

bool IsDirectory(const std::string& path) { return sys::Open(path, O_PATH | O_DIRECTORY).ok(); }

}  // namespace

Result<int> EvalListCommand(const Arguments& arguments) {
  eval::SuiteSources sources = {arguments.Get("tools"), ""};
  std::vector<std::string> operands = arguments.operands;
  if (arguments.Has("payloads")) {
    // `list --payloads DIR SUITE` and `list SUITE --payloads DIR` are one to the parser.
    auto directory = std::find_if(operands.begin(), operands.end(), IsDirectory);
    if (directory != operands.end()) {
      sources.payloads = *directory;
      operands.erase(directory);
    }
    if (operands.empty()) {
      const std::vector<eval::PayloadSet> sets = TRY(eval::FindPayloadSets(sources.payloads));
      TRY(PrintLines(eval::RenderPayloadSets(sets)));
      return 0;
    }
  }
  if (operands.size() != 1) {
    return Usage("eval list takes a SUITE, or --payloads", "agentic-ci eval list SUITE");
  }
  eval::Suite suite = TRY(eval::LoadSuite(operands[0], sources));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  std::string lines;
  for (const eval::Cell& cell : cells) lines += cell.Name() + "\n";
  TRY(PrintLines(lines));
  return 0;
}

Result<int> EvalRunCommand(const Arguments& arguments) {
  std::string file = TRY(OperandOf(arguments, 0, 1, "run SUITE"));
  eval::Suite suite = TRY(ReadSuite(arguments, file));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  const eval::Gate gate = TRY(GateOf(arguments));
  eval::RunPlan plan = TRY(PlanCellRuns(arguments, suite));
  TRY(CheckTrust(arguments, suite));
  TRY(sys::WriteAll(STDERR_FILENO, eval::RenderWarnings(suite)));
  if (plan.remote) TRY(TakeHeaderValues(&plan.remote->agent));
  plan.jobs = TRY(NumberOf(arguments, "jobs", 1, 1, kJobsMax));
  const uint32_t shards = TRY(NumberOf(arguments, "shards", 1, 1, eval::kShardsMax));
  if (arguments.Has("kubernetes")) {
    return PrintManifests(arguments, suite, {plan.jobs, shards, cells.size()});
  }
  if (arguments.Has("shards")) return Usage("--shards needs --kubernetes", "--shard 1/4");
  plan.results = TRY(eval::OpenResults(arguments.Get("results", "agentic-ci-eval"), kOtherResults));
  plan.resume = arguments.Has("resume");
  const bool json = arguments.Has("json");
  plan.done = [json](const std::string& name, const Error* failure, size_t left) {
    if (failure != nullptr) {
      logging::Warn("a cell has no result", {{"cell", name}, {"why", failure->what}});
    }
    std::string line = name + " done, " + std::to_string(left) + " left\n";
    if (failure == nullptr && !json) {
      (void)sys::WriteAll(STDERR_FILENO, "agentic-ci: info: cell " + line).ok();
    }
  };
  Status ran = eval::RunCells(suite, cells, plan);
  if (!ran.ok() && ran.error().code == Code::kUsage) return std::move(ran).error();
  Result<int> shown =
      Show(arguments, gate, eval::GradeResults(suite, cells, plan.results), plan.results);
  if (!ran.ok()) return std::move(ran).error();
  return shown;
}

// The cells of the suite that `directories` may have.
Result<std::vector<eval::Cell>> CellsIn(const Arguments& arguments, const eval::Suite& suite,
                                        const std::vector<std::string>& directories) {
  eval::Selection selection = TRY(SelectionOf(arguments));
  if (selection.trials == 0) {
    selection.trials = suite.trials;
    for (const std::string& directory : directories) {
      selection.trials =
          std::max(selection.trials, eval::HighestTrial(suite, selection, directory));
    }
  }
  return eval::PlanCells(suite, selection);
}

Result<int> EvalGradeCommand(const Arguments& arguments) {
  std::string file = TRY(OperandOf(arguments, 0, 2, "grade SUITE DIR"));
  const std::string& directory = arguments.operands[1];
  eval::Suite suite = TRY(eval::LoadSuite(file, SourcesOf(arguments)));
  const eval::Gate gate = TRY(GateOf(arguments));
  TRY(eval::RefuseLinkedResults(directory, "agentic-ci eval grade SUITE OTHER-DIR"));
  TRY(sys::RealPath(directory + "/cells").Context("reading " + directory));
  std::vector<eval::Cell> cells = TRY(CellsIn(arguments, suite, {directory}));
  return Show(arguments, gate, eval::GradeResults(suite, cells, directory), directory);
}

Result<int> EvalMergeCommand(const Arguments& arguments) {
  constexpr size_t kOperandsMin = 3;
  std::vector<std::string> directories = arguments.operands;
  if (directories.size() < kOperandsMin) {
    return Usage("eval merge takes SUITE DIR PART...", "agentic-ci eval merge SUITE DIR PART...");
  }
  eval::Suite suite = TRY(eval::LoadSuite(directories[0], SourcesOf(arguments)));
  directories.erase(directories.begin());
  const eval::Gate gate = TRY(GateOf(arguments));
  std::vector<eval::Cell> cells = TRY(CellsIn(arguments, suite, directories));
  const std::string directory =
      TRY(eval::OpenResults(directories.front(), "agentic-ci eval merge SUITE OTHER-DIR PART..."));
  directories.erase(directories.begin());
  std::vector<std::string> left_out = TRY(eval::MergeCells(cells, directories, directory));
  eval::Results results = eval::GradeResults(suite, cells, directory);
  for (const std::string& path : left_out) {
    results.notes.push_back(path + ": not copied, as it is not a regular file");
  }
  return Show(arguments, gate, results, directory);
}

Result<int> EvalCompareCommand(const Arguments& arguments) {
  std::string before_path = TRY(OperandOf(arguments, 0, 2, "compare BASELINE NOW"));
  codec::Json before = TRY(ReadEvaluation(before_path));
  codec::Json now = TRY(ReadEvaluation(arguments.operands[1]));
  eval::Comparison comparison = TRY(eval::Compare(before, now));
  if (arguments.Has("json")) {
    TRY(Print(codec::RenderJson(eval::ToJson(comparison))));
  } else {
    TRY(PrintLines(eval::Render(comparison)));
  }
  if (comparison.newly_succeeding.empty() && comparison.undecided.empty()) return 0;
  return Error{Code::kRefused, std::to_string(comparison.newly_succeeding.size()) +
                                   " attacks succeed that did not before, and of " +
                                   std::to_string(comparison.undecided.size()) +
                                   " it is not known any more"};
}

}  // namespace cli
