// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_command.h"

#include <stdlib.h>
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
#include "cli/repository_file.h"
#include "codec/data/position.h"
#include "eval/redteam/hostile_agent.h"
#include "eval/redteam/redteam.h"
#include "eval/redteam/redteam_text.h"
#include "eval/run/grade_results.h"
#include "eval/run/merge_cells.h"
#include "eval/run/run_cells.h"
#include "eval/show/compare.h"
#include "eval/show/files.h"
#include "eval/show/text.h"
#include "run/policy_source.h"

extern char** environ;

namespace cli {
namespace {

constexpr size_t kResultsBytesMax = size_t{64} << 20;
constexpr uint32_t kTrialsMax = 100;
constexpr uint32_t kJobsMax = 64;
constexpr uint32_t kShardsMax = 1000;
constexpr uint32_t kLimitMax = 1000000;

constexpr std::string_view kRedteamDoc =
    "Let a scripted hostile agent try to escape, to send data out and to find credentials, in this "
    "host's sandbox under a policy, and show what was stopped and what each line of the policy "
    "lets an agent do. It needs no model, and nothing leaves the machine. Without `policy`, the "
    "repository's is taken as it is in the working tree. Exit status 77: something got through "
    "that neither the policy nor the tier allows, or an attempt is undecided.";

// Those of `run` that a cell takes as they are.
constexpr auto kPassed = std::to_array<std::string_view>(
    {"agent",          "model",        "policy",       "image",        "image-key",
     "image-identity", "image-issuer", "image-bundle", "trusted-root", "insecure-registry",
     "ca-file",        "isolation",    "timeout",      "idle-timeout", "memory",
     "cpus",           "pids",         "disk",         "output",       "agent-cpu",
     "open-files",     "file-size",    "host-bytes",   "runner-cpu",   "max-tokens",
     "max-cost",       "max-requests", "secret",       "provider",     "env",
     "backend",        "gateway",      "gateway-tls"});

bool IsPassed(std::string_view name) {
  return std::find(kPassed.begin(), kPassed.end(), name) != kPassed.end();
}

const std::vector<OptionSpec>& SelectionOptions() {
  static const std::vector<OptionSpec> options = {
      {"user-task", "ID", "", "A user task to select. If not given, all.", true},
      {"injection-task", "ID", "", "An injection task to select. If not given, all.", true},
      {"trials", "NUMBER", "", "How often each cell is run. If not given, as the suite says."},
      {"shard", "I/N", "1/1", "Select only the I-th of N parts of the cells."}};
  return options;
}

const std::vector<OptionSpec>& GateOptions() {
  static const std::vector<OptionSpec> options = {
      {"max-succeeded", "NUMBER", "0",
       "How many attacks may succeed. More, and the exit status is 77."},
      {"max-undecided", "NUMBER", "0",
       "How many cells may be inconclusive, fail or be missing. More, and the exit status is 77."}};
  return options;
}

void Append(std::vector<OptionSpec>* options, const std::vector<OptionSpec>& more) {
  options->insert(options->end(), more.begin(), more.end());
}

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
  selection.trials = TRY(NumberOf(arguments, "trials", 0, 1, kTrialsMax));
  std::string shard = arguments.Get("shard", "1/1");
  size_t slash = shard.find('/');
  const char* middle = shard.data() + std::min(slash, shard.size());
  const char* end = shard.data() + shard.size();
  auto [first_end, first_error] = std::from_chars(shard.data(), middle, selection.shard);
  bool right = slash != std::string::npos && first_end == middle;
  if (right) {
    auto [last_end, last_error] = std::from_chars(middle + 1, end, selection.shards);
    right = last_end == end && first_error == std::errc() && last_error == std::errc();
  }
  if (!right || selection.shard < 1 || selection.shard > selection.shards ||
      selection.shards > kShardsMax) {
    return Usage("--shard: '" + shard + "' is not I/N, such as 1/4", "--shard 1/4");
  }
  return selection;
}

Result<std::string> OperandOf(const Arguments& arguments, size_t index, size_t count,
                              std::string_view usage) {
  if (arguments.operands.size() == count) return arguments.operands[index];
  return Usage("the operands are " + std::string(usage), "agentic-ci eval " + std::string(usage));
}

Status PrintWarnings(const eval::Suite& suite) {
  std::vector<eval::Warning> warnings = suite.warnings;
  std::stable_sort(warnings.begin(), warnings.end(), [](const auto& a, const auto& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  for (const eval::Warning& warning : warnings) {
    TRY(PrintLines(codec::Locate(suite.file, warning.at) + ": warning: " + warning.what));
  }
  return Ok();
}

// Returns whether a variable is about this process's own CI event, which is not about the cells.
bool IsOfEvent(std::string_view name) {
  return name == "CI" || name == "INPUTS" || name == "PATH" || name.starts_with("GITHUB_") ||
         name.starts_with("GITLAB_") || name.starts_with("CI_") || name.starts_with("AGENTIC_CI_");
}

std::vector<std::pair<std::string, std::string>> CellEnvironment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    std::string_view text(*one);
    size_t equals = text.find('=');
    if (equals == std::string_view::npos || IsOfEvent(text.substr(0, equals))) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// A file that a run names, as seen from another working directory.
Result<std::string> AbsoluteOf(const std::string& path) {
  return sys::RealPath(path).Context("reading " + path);
}

// Passes on the model's host, on which it depends what counts as sent.
void PassModelHost(const Arguments& arguments, const eval::Suite& suite, eval::RunPlan* plan) {
  if (arguments.Has("model-host")) {
    plan->options.insert(plan->options.end(), {"--model-host", arguments.Get("model-host")});
  } else if (plan->native && !plan->names_agent && !eval::SentTextsOf(suite).empty()) {
    logging::Warn("what the command asks its model counts as sent, since the model is not known",
                  {{"say", "--model-host HOST"}});
  }
}

Result<eval::RunPlan> PlanOf(const Arguments& arguments, const eval::Suite& suite) {
  eval::RunPlan plan;
  std::string results = arguments.Get("results", "agentic-ci-eval");
  TRY(sys::MakeDirectories(results).Context("making " + results));
  plan.results = TRY(AbsoluteOf(results));
  plan.jobs = TRY(NumberOf(arguments, "jobs", 1, 1, kJobsMax));
  plan.command = arguments.command;
  plan.names_agent = arguments.Has("agent") && arguments.Get("agent") != "command";
  plan.names_policy = arguments.Has("policy");
  if (!plan.names_agent && plan.command.empty() && suite.environment.agent_command.empty()) {
    return Usage("no agent: the suite names none", "agentic-ci eval run SUITE --agent claude-code");
  }
  const bool dict = suite.environment.backend == eval::Backend::kDict;
  plan.native = arguments.Get("backend", "native") == "native";
  if (dict && !plan.native) {
    return Error{Code::kUnsupported, "the suite's fake tools need agentic-ci's own sandbox",
                 "--backend native"};
  }
  for (const RunOption& option : kRunOptions) {
    const std::string name(option.spec.name);
    if (!IsPassed(name)) continue;
    for (std::string value : arguments.All(name)) {
      bool file = option.spec.value == "FILE";
      if (file) value = TRY(AbsoluteOf(value));
      if (name == "policy" && dict) {
        plan.policy = TRY(ReadNamedFile(value, kResultsBytesMax).Context("reading the policy"));
        continue;
      }
      plan.options.insert(plan.options.end(), {"--" + name, value});
    }
  }
  PassModelHost(arguments, suite, &plan);
  plan.environment = CellEnvironment();
  plan.search_path = sys::Environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  return plan;
}

// Those of `run` that a red team's run takes as they are; the policy and the checkout it needs
// itself.
constexpr auto kRedteamPassed = std::to_array<std::string_view>(
    {"image", "image-key", "image-identity", "image-issuer", "image-bundle", "trusted-root",
     "insecure-registry", "ca-file", "isolation", "memory", "cpus", "pids", "disk", "open-files",
     "file-size", "secret", "env"});
constexpr auto kRedteamOwn = std::to_array<std::string_view>({"policy", "workdir"});

template <size_t N>
bool IsIn(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

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
    TRY(sys::MakeDirectories(arguments.Get("report-dir")).Context("making the report directory"));
    plan.report = TRY(AbsoluteOf(arguments.Get("report-dir")));
  }
  for (const RunOption& option : kRunOptions) {
    const std::string name(option.spec.name);
    if (!IsIn(kRedteamPassed, name)) continue;
    for (const std::string& value : arguments.All(name)) {
      plan.options.insert(plan.options.end(), {"--" + name, value});
      if (name == "secret") plan.credentials.push_back(VariableOf(value));
    }
  }
  plan.environment = CellEnvironment();
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
    if (IsIn(kRedteamPassed, name) || IsIn(kRedteamOwn, name)) options.push_back(option.spec);
  }
  options.push_back(kJsonOption);
  return options;
}

// The gate of CI.
Result<int> Judge(const Arguments& arguments, const eval::Results& results) {
  uint32_t succeeded_max = TRY(NumberOf(arguments, "max-succeeded", 0, 0, kLimitMax));
  uint32_t undecided_max = TRY(NumberOf(arguments, "max-undecided", 0, 0, kLimitMax));
  size_t succeeded = 0;
  size_t undecided = results.missing.size();
  for (const eval::CellResult& cell : results.cells) {
    if (cell.injection.empty()) {
      undecided += eval::IsJudged(cell.ending) ? 0 : 1;
      continue;
    }
    const eval::Outcome outcome = cell.verdict.outcome;
    succeeded += outcome == eval::Outcome::kSucceeded ? 1 : 0;
    undecided +=
        outcome == eval::Outcome::kInconclusive || outcome == eval::Outcome::kError ? 1 : 0;
  }
  if (succeeded > succeeded_max) {
    return Error{Code::kRefused, std::to_string(succeeded) + " attacks succeeded, at most " +
                                     std::to_string(succeeded_max) + " may"};
  }
  if (undecided > undecided_max) {
    return Error{Code::kRefused, std::to_string(undecided) + " cells were not decided, at most " +
                                     std::to_string(undecided_max) + " may be left open"};
  }
  return 0;
}

Result<int> Show(const Arguments& arguments, const eval::Results& results,
                 const std::string& directory) {
  TRY(eval::WriteResults(directory, results));
  if (arguments.Has("json")) {
    TRY(Print(codec::RenderJson(eval::ToJson(results))));
  } else {
    TRY(PrintLines(eval::RenderTable(results)));
  }
  return Judge(arguments, results);
}

Result<codec::Json> ReadEvaluation(const std::string& path) {
  std::string file = path.ends_with(".json") ? path : path + "/eval.json";
  std::string text = TRY(ReadNamedFile(file, kResultsBytesMax).Context("reading " + file));
  return codec::ParseJson(text, {.bytes_max = kResultsBytesMax, .values_max = 5000000})
      .Context(file);
}

}  // namespace

std::vector<Command> EvalCommands() {
  std::vector<OptionSpec> run = {
      {"results", "DIR", "agentic-ci-eval", "The directory for cells and results."},
      {"jobs", "NUMBER", "1", "How many cells are run at the same time."},
      {"resume", "", "", "Keep the cells that DIR already has, and run the others."}};
  Append(&run, SelectionOptions());
  Append(&run, GateOptions());
  for (const RunOption& option : kRunOptions) {
    if (IsPassed(option.spec.name)) run.push_back(option.spec);
  }
  run.push_back(kModelHostOption);
  run.push_back(kJsonOption);
  std::vector<OptionSpec> grade = SelectionOptions();
  Append(&grade, GateOptions());
  grade.push_back(kJsonOption);
  return {
      {.name = "eval validate",
       .operands = "SUITE...",
       .doc = "Check suites of an evaluation, and the payload files they name, without running "
              "anything. Exit status 65 if one is invalid.",
       .options = {},
       .variables = {}},
      {.name = "eval list",
       .operands = "SUITE",
       .doc = "List the cells of a suite: each user task without an injection and with each.",
       .options = SelectionOptions(),
       .variables = {}},
      {.name = "eval run",
       .operands = "SUITE [-- COMMAND ARG...]",
       .doc = "Run the cells of a suite, each in a sandbox of its own, grade them and write the "
              "results. With a COMMAND, the task is its last argument. Exit status 77: more "
              "attacks succeeded, or more cells are undecided, than may.",
       .options = run,
       .variables = {{"PATH and all other variables",
                      "Passed on to the runs, except those of this process's own CI event. The "
                      "agent gets none of them that `run` would not give it."}}},
      {.name = "eval grade",
       .operands = "SUITE DIR",
       .doc = "Grade the cells in DIR again, such as after a change of the suite's checks, and "
              "write the results.",
       .options = grade,
       .variables = {}},
      {.name = "eval merge",
       .operands = "SUITE DIR PART...",
       .doc = "Copy the cells of results' directories, such as those of shards, into DIR, grade "
              "them there and write the results. Exit status 65: a cell is in two of them.",
       .options = grade,
       .variables = {}},
      {.name = "eval compare",
       .operands = "BASELINE NOW",
       .doc = "Compare two results, each a directory or its eval.json. Exit status 77 if an attack "
              "succeeds that did not before, or was decided before and is not any more.",
       .options = {kJsonOption},
       .variables = {}},
      {.name = "eval redteam",
       .operands = "",
       .doc = kRedteamDoc,
       .options = RedteamOptions(),
       .variables = {{"PATH and all other variables",
                      "Passed on to the run, except those of this process's own CI event and the "
                      "values of `secret`, for which a canary stands."},
                     {"TMPDIR", "Where the bait is laid. It must be outside the checkout."}}},
      {.name = "eval redteam-agent",
       .operands = "TARGETS",
       .doc = "Started by `eval redteam` as its agent.",
       .options = {},
       .variables = {},
       .hidden = true},
  };
}

Result<int> EvalValidateCommand(const Arguments& arguments) {
  if (arguments.operands.empty())
    return Usage("a suite is missing", "agentic-ci eval validate SUITE");
  std::optional<Error> first;
  for (const std::string& file : arguments.operands) {
    Result<eval::Suite> suite = eval::LoadSuite(file);
    if (!suite.ok()) {
      if (first) TRY(sys::WriteAll(STDERR_FILENO, RenderError(*first)));
      first = suite.error();
      continue;
    }
    TRY(PrintWarnings(suite.value()));
    TRY(PrintLines(codec::Locate(file, {}) +
                   ": ok: " + std::to_string(suite.value().user_tasks.size()) + " user tasks, " +
                   std::to_string(suite.value().injection_tasks.size()) + " injection tasks"));
  }
  if (first) return *first;
  return 0;
}

Result<int> EvalListCommand(const Arguments& arguments) {
  std::string file = TRY(OperandOf(arguments, 0, 1, "list SUITE"));
  eval::Suite suite = TRY(eval::LoadSuite(file));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  std::string lines;
  for (const eval::Cell& cell : cells) lines += cell.Name() + "\n";
  TRY(PrintLines(lines));
  return 0;
}

Result<int> EvalRunCommand(const Arguments& arguments) {
  std::string file = TRY(OperandOf(arguments, 0, 1, "run SUITE"));
  eval::Suite suite = TRY(eval::LoadSuite(file));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  eval::RunPlan plan = TRY(PlanOf(arguments, suite));
  const bool resume = arguments.Has("resume");
  for (const eval::Cell& cell : cells) {
    if (resume || !eval::IsDone(plan.results, cell)) continue;
    return Usage(plan.results + " already has the cell " + cell.Name(),
                 "--resume, or another --results");
  }
  const bool json = arguments.Has("json");
  plan.done = [json](const std::string& name, size_t left) {
    std::string line = name + " done, " + std::to_string(left) + " left\n";
    if (!json) (void)sys::WriteAll(STDERR_FILENO, "agentic-ci: info: cell " + line).ok();
  };
  TRY(eval::RunCells(suite, cells, plan));
  return Show(arguments, eval::GradeResults(suite, cells, plan.results), plan.results);
}

Result<int> EvalGradeCommand(const Arguments& arguments) {
  std::string file = TRY(OperandOf(arguments, 0, 2, "grade SUITE DIR"));
  const std::string& directory = arguments.operands[1];
  eval::Suite suite = TRY(eval::LoadSuite(file));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  TRY(sys::RealPath(directory + "/cells").Context("reading " + directory));
  return Show(arguments, eval::GradeResults(suite, cells, directory), directory);
}

Result<int> EvalMergeCommand(const Arguments& arguments) {
  constexpr size_t kOperandsMin = 3;
  std::vector<std::string> operands = arguments.operands;
  if (operands.size() < kOperandsMin) {
    return Usage("the operands are merge SUITE DIR PART...",
                 "agentic-ci eval merge SUITE DIR PART...");
  }
  eval::Suite suite = TRY(eval::LoadSuite(operands[0]));
  eval::Selection selection = TRY(SelectionOf(arguments));
  std::vector<eval::Cell> cells = TRY(eval::PlanCells(suite, selection));
  const std::string directory = operands[1];
  operands.erase(operands.begin(), operands.begin() + kOperandsMin - 1);
  TRY(eval::MergeCells(cells, operands, directory));
  return Show(arguments, eval::GradeResults(suite, cells, directory), directory);
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
