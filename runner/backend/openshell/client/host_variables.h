// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/openshell/client/command_line.h"

namespace openshell {

// One of the variables of `podman unshare`, which tell podman whose containers are meant: set where
// podman has no root.
inline constexpr char kRootlessVariable[] = "_CONTAINERS_ROOTLESS_UID";

// Returns the part of this process's environment that the programs of OpenShell and podman get: the
// places of their own configuration, and nothing that may be a credential.
Variables HostVariables();
// Returns the same, with configuration, state and data of the gateway whose state is at `state`.
Variables VariablesIn(const std::string& state);

}  // namespace openshell
