// SPDX-License-Identifier: Apache-2.0
// Sandboxes of OpenShell that last. Each has a keeper, a process that owns the gateway or its
// connection to one, ends the sandbox when its time has passed, and writes the report; it answers
// on the socket that a native sandbox has (session/protocol.h), except for commands: those are run
// by the process that wants them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "session/client.h"

namespace openshell {

// Runs a script in one, one at a time, as session::Exec() does.
Result<session::CommandResult> Exec(const session::Place& place, const std::string& name,
                                    std::string_view script, const session::ExecRequest& request,
                                    const session::Sink& sink);

// Removes what a killed keeper left.
void Sweep();

}  // namespace openshell
