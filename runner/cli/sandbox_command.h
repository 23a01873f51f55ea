// SPDX-License-Identifier: Apache-2.0
// The commands `agentic-ci sandbox ...`, `watch` and `report`: their rows for the table of
// commands, and what they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/open/open.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "serve/creation.h"
#include "session/protocol.h"

namespace cli {

// Returns the commands `agentic-ci sandbox ...`, for the table of commands.
std::vector<Command> SandboxCommands();

// A sandbox that a command is about.
struct NamedSandbox {
  session::Place place;
  std::string name;
  const backend::Row* backend;

  // Runs a script in the sandbox. Fails as session::Exec() does.
  Result<session::CommandResult> Exec(std::string_view script, const session::ExecRequest& request,
                                      const session::Sink& sink) const {
    return backend->exec(place, name, script, request, sink);
  }
};
// Finds it. Fails with kNotFound if no sandbox has that name, and with kUsage for a pool and for a
// sandbox that waits in one.
Result<NamedSandbox> FindSandbox(const std::string& name);
// Fails with kUsage for a sandbox that waits in a pool: who takes it is to find nothing in it.
Status CheckTaken(const session::Facts& facts);

// Returns the one operand of `command`: a sandbox's name.
Result<std::string> SandboxNameOf(const Arguments& arguments, std::string_view command);
// Returns the exit status for a command that ended so in a sandbox; warns if it did not end itself.
int StatusOf(const session::CommandResult& result);
void WarnOfEnd(const session::CommandResult& result, const std::string& sandbox);

// Returns the command for a person's shell in a sandbox, and the lines typed there that are
// commands to agentic-ci.
Command SandboxShell();
// Returns the command `watch`, of a sandbox or a run.
Command WatchCommandSpec();
// `report`, `report open` and `report diff`, the longer names first.
std::vector<Command> ReportCommands();
// Returns the command `stats`.
Command StatsCommandSpec();
Result<int> WatchCommand(const Arguments& arguments);
Result<int> ReportCommand(const Arguments& arguments);
Result<int> ReportOpenCommand(const Arguments& arguments);
Result<int> ReportDiffCommand(const Arguments& arguments);

// Returns `create` by another name: the options of a sandbox that is to be created.
Command SandboxCreation(std::string_view name, Handler carry_out, std::string_view doc,
                        std::string_view example);
Result<session::CreateRequest> ReadCreateRequest(const Arguments& arguments, std::string name);
Result<int> CreateSandbox(const Arguments& arguments, std::string name);
Result<int> ExecInSandbox(const Arguments& arguments, const std::string& name);
Result<int> DeleteSandbox(const Arguments& arguments, const std::string& name);

// Returns the commands `serve` and `mcp`, and how the requests of the former create sandboxes.
Command ServeCommandSpec();
Command McpCommandSpec();
serve::CreateOptions ServeOptions();

// Each returns the exit status.
Result<int> SandboxCreateCommand(const Arguments& arguments);
Result<int> SandboxTakeCommand(const Arguments& arguments);
Result<int> SandboxExecCommand(const Arguments& arguments);
Result<int> SandboxShellCommand(const Arguments& arguments);
Result<int> SandboxListCommand(const Arguments& arguments);
Result<int> SandboxDiffCommand(const Arguments& arguments);
Result<int> SandboxResetCommand(const Arguments& arguments);
Result<int> SandboxDeleteCommand(const Arguments& arguments);

// Those about whole trees of files.
std::vector<Command> SandboxFileCommands();

// Each returns the exit status.
Result<int> SandboxPutCommand(const Arguments& arguments);
Result<int> SandboxGetCommand(const Arguments& arguments);
Result<int> SandboxApplyCommand(const Arguments& arguments);
Result<int> SandboxPolicyCommand(const Arguments& arguments);
Result<int> SandboxSnapshotCommand(const Arguments& arguments);
Result<int> SandboxSnapshotsCommand(const Arguments& arguments);
Result<int> SandboxRestoreCommand(const Arguments& arguments);

}  // namespace cli
