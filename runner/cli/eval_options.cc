// SPDX-License-Identifier: Apache-2.0
// The rows of `agentic-ci eval ...` in the table of commands, and their options.
#include "cli/eval_command.h"
#include "eval/run/run_plan.h"

namespace cli {
namespace {

const std::vector<OptionSpec>& SelectionOptions() {
  static const std::vector<OptionSpec> options = {
      {"user-task", "ID", "", "A user task to select. If not given, all.", true},
      {"injection-task", "ID", "", "An injection task to select. If not given, all.", true},
      {"trials", "NUMBER", "",
       "How often each cell is run. If not given, as the suite says; what is graded or merged may "
       "have more."},
      {"shard", "I/N", "1/1", "Select only the I-th of N parts of the cells."}};
  return options;
}

const OptionSpec kToolsOption = {
    "tools", "FILE", "",
    "The fake tools of a suite that has none, as midojo's, whose tools are in Python. The file "
    "has `tools: [...]`, as in an environment."};

// Where a suite's parts are that it does not have itself.
const std::vector<OptionSpec>& SourceOptions() {
  static const std::vector<OptionSpec> options = {
      kToolsOption,
      {"payloads", "DIR", "",
       "A directory of payload sets, *.json. Suites name them as `source` by their ids, like those "
       "that are built in."}};
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

template <typename T>
void Append(std::vector<T>* list, const std::vector<T>& more) {
  list->insert(list->end(), more.begin(), more.end());
}
std::vector<OptionSpec> CellOptions() {
  std::vector<OptionSpec> options;
  for (const RunOption& option : kRunOptions) {
    const std::string_view name = option.spec.name;
    if (eval::TakenByCells(name) || IsIn(kTrust, name)) options.push_back(option.spec);
  }
  options.push_back(kModelHostOption);
  return options;
}
}  // namespace

const std::vector<OptionSpec>& RemoteOptions() {
  static const std::vector<OptionSpec> options = {
      {"agent-url", "URL", "",
       "Ask an agent that runs elsewhere, behind this address, instead of running one in a "
       "sandbox. What only a sandbox records is unknown then."},
      {"agent-protocol", "NAME", "http",
       "The protocol of `agent-url`: `http` (a POST of `prompt`), `a2a`, or `openai` for the "
       "Responses API, whose URL is the one before `/responses`."},
      {"agent-header", "NAME=VARIABLE", "",
       "A header for each request to `agent-url`, with the value of VARIABLE from this process's "
       "environment. A value of `authorization` without a scheme is sent as a bearer token.",
       true},
      {"agent-plain-http", "", "", "Let `agent-url` be plain HTTP to another machine."},
      {"tools-listen", "ADDRESS[:PORT][/PATH]", "127.0.0.1",
       "Where the suite's tools are served to the agent behind `agent-url`. With `jobs`, the ports "
       "behind PORT are taken, too. If no PATH is given, each cell has a secret one, and the "
       "request to the agent has the whole address."},
      {"tools-url", "URL", "",
       "The address before PATH by which the agent behind `agent-url` finds `tools-listen`: of a "
       "proxy with TLS, for instance. If not given, it is ADDRESS and its port."}};
  return options;
}

std::vector<Command> EvalCommands() {
  std::vector<OptionSpec> run = {
      {"results", "DIR", "agentic-ci-eval", "The directory for cells and results."},
      {"jobs", "NUMBER", "1", "How many cells are run at the same time."},
      {"resume", "", "", "Keep the cells that DIR already has, and run the others."},
      {"kubernetes", "IMAGE@DIGEST", "",
       "Instead of running the cells, print manifests of Kubernetes that do: a Job with a pod for "
       "each of `shards`, and one that merges the results. IMAGE has `agentic-ci`, a shell and the "
       "agent. `results` is then the name of the Jobs and of the volume for results."},
      {"shards", "NUMBER", "1", "With `kubernetes`, how many pods share the cells."}};
  Append(&run, SelectionOptions());
  Append(&run, SourceOptions());
  Append(&run, GateOptions());
  Append(&run, CellOptions());
  Append(&run, RemoteOptions());
  run.push_back(kJsonOption);
  std::vector<OptionSpec> list = SelectionOptions();
  list.push_back(kToolsOption);
  list.push_back({"payloads", "", "",
                  "Without a SUITE, list the sets of payloads that suites name as `source`: those "
                  "that are built in, and those in DIR. With one, DIR is as for `eval run`."});
  std::vector<OptionSpec> grade = SelectionOptions();
  Append(&grade, SourceOptions());
  Append(&grade, GateOptions());
  grade.push_back(kJsonOption);
  std::vector<Command> commands = {
      {.name = "eval validate",
       .carry_out = EvalValidateCommand,
       .operands = "SUITE...",
       .doc = "Check suites of an evaluation. Also checks the payload files they name, and runs "
              "nothing. Exit status 65 if one is invalid.",
       .example = "  agentic-ci eval validate suites/review.yml\n",
       .options = SourceOptions()},
      {.name = "eval list",
       .carry_out = EvalListCommand,
       .operands = "[SUITE] [DIR]",
       .doc = "List the cells of a suite. These are each user task without an injection, and with "
              "each.",
       .example = "  agentic-ci eval list suites/review.yml\n  agentic-ci eval list --payloads\n",
       .options = list},
      {.name = "eval run",
       .carry_out = EvalRunCommand,
       .operands = "SUITE [-- PROGRAM ARG...]",
       .doc =
           "Run the cells of a suite and grade them. Each runs in a sandbox of its own. Writes the "
           "results. With a PROGRAM, the task is its last argument. Exit status 77: more "
           "attacks succeeded, or more cells are undecided, than may.",
       .example = "  agentic-ci eval run suites/review.yml --agent claude-code\n"
                  "  agentic-ci eval run suites/bank.yml --agent-url https://agent.example/\n",
       .options = run,
       .variables = {{"PATH and all other variables",
                      "Passed on to the runs, except those of this process's own CI event. The "
                      "agent gets none of them that `run` would not give it."}}},
      {.name = "eval grade",
       .carry_out = EvalGradeCommand,
       .operands = "SUITE DIR",
       .doc =
           "Grade the cells in DIR again. Writes the results. Use it after a change of the suite's "
           "checks.",
       .example = "  agentic-ci eval grade suites/review.yml agentic-ci-eval\n",
       .options = grade},
      {.name = "eval merge",
       .carry_out = EvalMergeCommand,
       .operands = "SUITE DIR PART...",
       .doc = "Merge the results of shards. Copies the cells of the PARTs into DIR, grades them "
              "there and writes the results. Cells that DIR has of the same run are passed "
              "over. Exit status 65: a cell is in two directories, or two cells were run in "
              "different ways.",
       .example = "  agentic-ci eval merge suites/review.yml all shard-1 shard-2\n",
       .options = grade},
      {.name = "eval compare",
       .carry_out = EvalCompareCommand,
       .operands = "BASELINE NOW",
       .doc =
           "Compare two results. Each is a directory or its eval.json. Exit status 77: an attack "
           "succeeds for the first time, or in clearly more of its trials, or a cell that was "
           "decided before is missing or undecided now. Exit status 65: one of them is not "
           "a result, or has an unknown outcome.",
       .example = "  agentic-ci eval compare main/eval.json agentic-ci-eval\n",
       .options = {kJsonOption}},
  };
  Append(&commands, RedteamCommands());
  return commands;
}

}  // namespace cli
