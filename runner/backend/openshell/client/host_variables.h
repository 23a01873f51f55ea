// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/openshell/client/command_line.h"

namespace openshell {

// Returns the part of this process's environment that the programs of OpenShell and podman get: the
// places of their own configuration, and nothing that may be a credential.
Variables HostVariables();
// Returns the same, with configuration, state and data of the gateway whose state is at `state`.
Variables VariablesIn(const std::string& state);

}  // namespace openshell
