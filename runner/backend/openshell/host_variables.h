// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/openshell/command_line.h"

namespace openshell {

// What of this process's environment the programs of OpenShell and podman get: where they find
// their own configuration, and nothing that may be a credential.
Variables HostVariables();
// The same, with configuration, state and data of the gateway whose state is at `state`.
Variables VariablesIn(const std::string& state);

}  // namespace openshell
