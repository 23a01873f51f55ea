// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/fleet.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "backend/openshell/gateway.h"
#include "backend/openshell/sandbox.h"
#include "base/sys.h"

namespace openshell {
namespace {

constexpr std::chrono::seconds kFleetTime{60};

Result<std::unique_ptr<Gateway>> Reach(const GatewayAddress& gateway) {
  return Gateway::Attach({sys::Environment("PATH").value_or(""), ""}, gateway.where, gateway.tls);
}

}  // namespace

Result<std::vector<SandboxFacts>> ListFleet(const GatewayAddress& address) {
  std::unique_ptr<Gateway> gateway = TRY(Reach(address));
  std::vector<SandboxFacts> all =
      TRY(gateway->client().List(kManagedLabel, kManagedBy, Deadline::After(kFleetTime)));
  std::sort(all.begin(), all.end(),
            [](const SandboxFacts& a, const SandboxFacts& b) { return a.name < b.name; });
  return all;
}

Status DeleteFromFleet(const GatewayAddress& address, const std::string& name) {
  if (!IsRunName(name)) {
    return Error{Code::kRefused, "'" + name + "' is not the name of a sandbox of agentic-ci",
                 "agentic-ci sandbox list --backend openshell --gateway ..."};
  }
  std::unique_ptr<Gateway> gateway = TRY(Reach(address));
  const Deadline deadline = Deadline::After(kFleetTime);
  const std::optional<SandboxFacts> shown = TRY(gateway->client().Find(name, deadline));
  if (shown) {
    if (shown->Label(kManagedLabel) != kManagedBy) {
      return Error{Code::kRefused, "agentic-ci did not make the sandbox '" + name + "'",
                   "openshell sandbox delete " + name};
    }
    TRY(gateway->client().Delete(name, deadline));
  }
  const int credentials = TRY(DeleteCredentials(gateway->client(), name, deadline));
  if (shown || credentials > 0) return Ok();
  return Error{Code::kNotFound, "the gateway has no sandbox '" + name + "'",
               "agentic-ci sandbox list --backend openshell --gateway ..."};
}

}  // namespace openshell
