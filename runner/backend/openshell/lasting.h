// SPDX-License-Identifier: Apache-2.0
// Sandboxes of OpenShell that last. Each has a keeper, a process that owns the gateway or its
// connection to one, ends the sandbox when its time has passed, and writes the report; it answers
// on the socket that a native sandbox has (session/protocol.h), except for commands: those are run
// by the process that wants them.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace openshell {

std::unique_ptr<backend::Backend> MakeBackend(session::Place place);

// Removes what a killed keeper left.
void Sweep();

}  // namespace openshell
