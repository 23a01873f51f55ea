// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/open_client.h"

#include <utility>

#include "backend/openshell/client/command_client.h"
#include "backend/openshell/client/host_variables.h"
#include "backend/openshell/client/rpc_client.h"

namespace openshell {

std::unique_ptr<Client> ClientIn(const std::string& state, ProgramPlaces places, int cancel) {
  if (HasWorkspace(state)) return std::make_unique<RpcClient>(state, cancel);
  return std::make_unique<CommandClient>(CommandLine(std::move(places), VariablesIn(state), cancel),
                                         state);
}

}  // namespace openshell
