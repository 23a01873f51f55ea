// SPDX-License-Identifier: Apache-2.0
// The commands `agentic-ci eval ...`: their rows for the table of commands, and the parts that
// evaluation and red team share.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "eval/suite/suite.h"

namespace cli {

std::vector<Command> EvalCommands();
std::vector<Command> RedteamCommands();  // Those of them that are about a red team.

// Options of `run` that decide which credentials a run may have. They are judged once, for all
// cells.
inline constexpr auto kTrust =
    std::to_array<std::string_view>({"gitlab-issuer", "gitlab-keys", "gitlab-trust-variables"});

// Returns the options about an agent that runs elsewhere.
const std::vector<OptionSpec>& RemoteOptions();

// Returns whether `name` is one of `names`, which are options of `run`.
template <size_t N>
bool IsIn(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns this process's environment for a run that it starts: all but what is about its own CI
// event, which is not about that run. The variables that its `credentials` are read from are passed
// on, also those of CI such as GITHUB_TOKEN, but for one that shows which CI this is.
std::vector<std::pair<std::string, std::string>> CellEnvironment(
    const std::vector<std::string>& credentials);

// Returns the canonical path of a file, as such a run has another working directory. Fails with
// kNotFound.
Result<std::string> AbsoluteOf(const std::string& path);

// How the cells of an evaluation are divided among pods.
struct ClusterShape {
  uint32_t jobs = 1;    // Cells at the same time in each pod.
  uint32_t shards = 1;  // Pods.
  size_t cells = 0;     // In all pods together.
};

// Prints the manifests by which a cluster runs `suite` with the options of `eval run`. Before
// anything is printed, fails with kUsage for an option that pods do not take, an image without a
// digest, a name that is invalid, or more shards than cells; with kNotFound or kInvalid for a file
// that cannot be read or sent along.
Result<int> PrintManifests(Arguments arguments, const eval::Suite& suite,
                           const ClusterShape& shape);

Result<int> EvalValidateCommand(const Arguments& arguments);
Result<int> EvalListCommand(const Arguments& arguments);
Result<int> EvalRunCommand(const Arguments& arguments);
Result<int> EvalGradeCommand(const Arguments& arguments);
Result<int> EvalMergeCommand(const Arguments& arguments);
Result<int> EvalCompareCommand(const Arguments& arguments);
Result<int> EvalRedteamCommand(const Arguments& arguments);
Result<int> EvalRedteamAgentCommand(const Arguments& arguments);

}  // namespace cli
