// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/harness.h"
#include "base/result.h"
#include "run/request.h"
#include "session/client.h"

namespace session {

// Puts the files of `plan` into the home directory and runs its command line, with its variables
// and its task on standard input. What stands for the model's credential comes from the variable
// that has it: OpenShell's is not the one that was planned. For any shell.
std::string AgentScript(const agent::AgentPlan& plan);

// Runs a script in a sandbox: Exec(), or another backend's.
using ScriptRunner = std::function<Result<CommandResult>(
    std::string_view script, const ExecRequest& request, const Sink& sink)>;

// Runs `agent` (`command` if null) as `request` says (prompt, model, command, timeout_s, the
// sandbox's own if 0) in the existing sandbox that `facts` are about, with its readable log on
// standard output. Returns the exit status as run::Run() does; the sandbox's gates and report come
// with its end.
Result<int> RunAgent(const ScriptRunner& run, const agent::AgentDescription* agent,
                     const run::Request& request, const Facts& facts);

}  // namespace session
