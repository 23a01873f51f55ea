// SPDX-License-Identifier: Apache-2.0
// Everything that the command line knows about GitHub Actions: the step's summary, its outputs, its
// annotations, its masks. The action's inputs are in cli/inputs.h.
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

struct OutputDoc {
  std::string_view name;
  std::string_view doc;  // A sentence.
};

// The outputs of `agentic-ci action` and of `agentic-ci post`; action.yml and post/action.yml pass
// them on.
inline constexpr auto kActionOutputs = std::to_array<OutputDoc>({
    {"conclusion",
     "How the run ended: `success`, `findings` if they reach `fail-on`, `agent-failed`, "
     "`timed-out`, `refused`, ... `setup-failed` if the agent was not started, `untrusted` if "
     "its actor may not start one, `skipped` if there was nothing to do, `budget` if a budget "
     "across runs left nothing, `planned` with the input `plan-only`, `lost` if the run was killed "
     "before it could say."},
    {"reason", "The reason, in one line; empty on success."},
    {"exit-code", "The exit status of the run."},
    {"report-dir",
     "The report directory; empty if this run wrote nothing there. It is not uploaded "
     "automatically."},
    {"report-path", "The report as a page: `report.html` in that directory."},
    {"patch-path", "What the agent changed, as a patch; empty if it changed nothing."},
    {"sarif-path", "The findings and refused requests, as SARIF."},
    {"changed-files", "How many files the agent changed."},
    {"findings-count", "How many findings the agent and the gates reported."},
    {"blocked-count", "How many distinct requests the gateway refused."},
    {"enforced",
     "`true` if a sandbox was started and none of its controls is `unavailable` in `run.json`, "
     "except "
     "`namespaces` in tier `landlock`; otherwise `false`. Empty if there is no report. A later "
     "step "
     "can require it to be `true`."},
    {"cost-usd",
     "What the models cost, in US dollars, as counted by the gateway, or as reported by the agent "
     "if the gateway saw no model; empty if unknown."},
    {"tokens", "How many tokens the models used, including cached ones."},
    {"version", "The version of agentic-ci that ran."},
    {"task", "The task of the configuration that was carried out; empty if there is none."},
    {"post",
     "What the task of the configuration wants posted of the report, as `what` of `post` takes it, "
     "or `none`; empty if it does not say."},
});
inline constexpr auto kPostOutputs = std::to_array<OutputDoc>({
    {"comment-url", "The URL of the comment; empty if none was posted."},
    {"commit", "The commit that holds the agent's changes; empty if they were not delivered."},
    {"branch", "The branch that the commit is on."},
    {"pull-request-url", "The URL of the pull request with the changes, for `pull-request`."},
});

using Outputs = std::vector<std::pair<std::string, std::string>>;

// Returns every output of kActionOutputs, of a run that has a report. `post` is run::Request::post.
Outputs RunOutputs(const report::RunRecord& record, const std::string& report_dir,
                   const std::string& post = {});

// Returns what a summary of this job's run may link to.
report::SummaryOptions LinksOf(const forge::Event& event);
// Append to the step's summary and outputs where the event names them; otherwise do nothing.
Status WriteStepSummary(const forge::Event& event, std::string_view markdown);
Status WriteOutputs(const forge::Event& event, const Outputs& outputs);

// `agentic-ci action`: `run` with the inputs of cli/inputs.h. Returns the exit status of the run.
Result<int> ActionCommand(const Arguments& arguments);

// `agentic-ci action post`: `post` with the inputs of cli/inputs.h. Returns its exit status.
Result<int> ActionPostCommand(const Arguments& arguments);

}  // namespace cli
