// SPDX-License-Identifier: Apache-2.0
// The choice of a client, by the generation of the gateway.
#pragma once

#include <memory>
#include <string>

#include "backend/openshell/client/client.h"
#include "base/program_places.h"

namespace openshell {

// Returns a client for the gateway whose configuration is in the directory `state`: by gRPC if
// WriteWorkspace() wrote there. Works in any process that may read the directory. Programs are
// started from `places`. `cancel` (borrowed, or -1) is as in CommandLine.
std::unique_ptr<Client> ClientIn(const std::string& state, ProgramPlaces places, int cancel = -1);

}  // namespace openshell
