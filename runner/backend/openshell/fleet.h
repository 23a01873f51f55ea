// SPDX-License-Identifier: Apache-2.0
// Finds by its label what this program made on a gateway that others run: a run whose machine went
// away leaves its sandbox there.
#pragma once

#include <string>
#include <vector>

#include "backend/openshell/client/client.h"
#include "base/result.h"

namespace openshell {

// The address of a gateway: `where` and `tls` as Gateway::Attach() takes them.
struct GatewayAddress {
  std::string where;
  std::string tls;
};

// Returns every sandbox of any run of this program, live ones too, by name.
Result<std::vector<SandboxFacts>> ListFleet(const GatewayAddress& gateway);

// Deletes a sandbox and the credentials of its run. Fails with kRefused if this program did not
// make it, with kNotFound if neither it nor a credential of its run is there.
Status DeleteFromFleet(const GatewayAddress& gateway, const std::string& name);

}  // namespace openshell
