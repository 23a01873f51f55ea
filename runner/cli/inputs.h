// SPDX-License-Identifier: Apache-2.0
// The options of a command as a CI system's own inputs: GitHub's action has them in one JSON
// object, GitLab's component in one variable each. An empty input counts as not given.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/options.h"
#include "forge/event.h"

namespace cli {

// The input that the action and the component have beside an input per option of `run`.
inline constexpr OptionSpec kCommandInput = {"command", "ARGUMENTS", "",
                                             "The command for the agent `command`, or further "
                                             "arguments for another agent, one argument per line.",
                                             true};
static_assert(WellFormed(kCommandInput));

// The input for what `post` has as an operand.
inline constexpr OptionSpec kReportDirInput = {"report-dir", "DIR", "agentic-ci-report",
                                               "The report directory of the run."};
static_assert(WellFormed(kReportDirInput));

// Returns "AGENTIC_CI_INPUT_POLICY_REF" for "policy-ref": the variable that the component sets.
std::string InputVariable(std::string_view name);

// The text of an input by its name in kebab-case; empty if it was not given.
using Inputs = std::function<std::string(std::string_view)>;

// Parses a JSON object of strings, as `toJSON(inputs)` gives it. Ignores other members, since
// action.yml has inputs of its own. Fails with kInvalid.
Result<Inputs> ParseInputs(std::string_view json);

// Reads the variable INPUTS, or without it those of InputVariable(). Fails with kSetup if neither
// INPUTS nor any of `options` is set, or with kInvalid.
Result<Inputs> ReadInputs(const forge::EnvironmentReader& environment,
                          const std::vector<OptionSpec>& options);

// Returns the request that the inputs of `run` make. Fails with kUsage, in the words of the command
// line.
Result<run::Request> ReadRunInputs(const Inputs& inputs);

// Returns the arguments that the inputs of a command with `options` and one operand,
// kReportDirInput, make. Fails with kUsage.
Result<Arguments> ReadPostInputs(const Inputs& inputs, const std::vector<OptionSpec>& options);

}  // namespace cli
