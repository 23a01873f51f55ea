// SPDX-License-Identifier: Apache-2.0
// All that the command line knows of GitHub Actions: the action's inputs, the step's summary, its
// outputs, its annotations, its masks.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "forge/event.h"
#include "report/read.h"

namespace cli {

// What the action has beside an input per option of `run`; action.yml is made from both.
inline constexpr OptionSpec kCommandInput = {"command", "ARGUMENTS", "",
                                             "The command for the agent `command`, or further "
                                             "arguments for another agent, one argument per line.",
                                             true};
static_assert(WellFormed(kCommandInput));

struct OutputDoc {
  std::string_view name;
  std::string_view doc;  // A sentence.
};

// The outputs of `agentic-ci action` and of `agentic-ci post`; action.yml passes the former on.
inline constexpr auto kActionOutputs = std::to_array<OutputDoc>({
    {"exit-code", "The exit status of the run."},
    {"outcome", "How the run ended: `success`, `agent-failed`, `timed-out`, `refused`, ..."},
    {"reason", "The reason, in one line; empty on success."},
    {"report-dir", "The report directory."},
    {"changed-files", "How many files the agent changed."},
    {"denied-requests", "How many distinct requests the gateway refused."},
    {"cost-usd",
     "What the models cost, in US dollars, as counted by the gateway, or as reported by the agent "
     "if the gateway saw no model; empty if unknown."},
});
inline constexpr auto kPostOutputs = std::to_array<OutputDoc>({
    {"comment-url", "The URL of the comment."},
});

// Turns the action's inputs (a JSON object of strings, as `toJSON(inputs)` gives it) into a
// request. An empty input was not given; names that are no option belong to action.yml itself.
// kUsage.
Result<run::Request> ParseInputs(std::string_view json);

using Outputs = std::vector<std::pair<std::string, std::string>>;

// The outputs of a run that has a report.
Outputs RunOutputs(const report::RunRecord& record, const std::string& report_dir);

// Appends to the step's summary and outputs where the event names them; otherwise does nothing.
Status WriteStepSummary(const forge::Event& event, std::string_view markdown);
Status WriteOutputs(const forge::Event& event, const Outputs& outputs);

// `agentic-ci action`: gives the exit status of the run.
Result<int> ActionCommand(const Arguments& arguments);

}  // namespace cli
