// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/fleet.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "backend/openshell/gateway.h"
#include "backend/openshell/sandbox.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace openshell {
namespace {

constexpr std::chrono::seconds kFleetTime{60};
constexpr size_t kFieldBytesMax = 100;
constexpr int kPage = 500;
constexpr size_t kSandboxesMax = 10000;

Result<std::unique_ptr<Gateway>> Reach(const GatewayAddress& gateway) {
  return Gateway::Attach({sys::Environment("PATH").value_or(""), ""}, gateway.where, gateway.tls);
}

}  // namespace

Result<std::vector<FleetSandbox>> ListFleet(const GatewayAddress& address) {
  std::unique_ptr<Gateway> gateway = TRY(Reach(address));
  const std::string selector = std::string(kManagedLabel) + "=" + kManagedBy;
  const Deadline deadline = Deadline::After(kFleetTime);
  std::vector<FleetSandbox> all;
  for (int offset = 0;; offset += kPage) {
    codec::Json page = TRY(gateway->openshell().AskJson(
        {"sandbox", "list", "-o", "json", "--selector", selector, "--limit", std::to_string(kPage),
         "--offset", std::to_string(offset)},
        deadline));
    if (page.array() == nullptr) return Error{Code::kIo, "the gateway lists no sandboxes"};
    if (all.size() + page.array()->size() > kSandboxesMax) {
      return Error{Code::kIo,
                   "the gateway lists more than " + std::to_string(kSandboxesMax) + " sandboxes"};
    }
    for (const codec::Json& one : *page.array()) {
      all.push_back({codec::NeutralLine(one.StringAt("name"), kFieldBytesMax),
                     codec::NeutralLine(one.StringAt("phase"), kFieldBytesMax),
                     codec::NeutralLine(one.StringAt("created_at"), kFieldBytesMax)});
    }
    if (page.array()->size() < static_cast<size_t>(kPage)) break;
  }
  std::sort(all.begin(), all.end(),
            [](const FleetSandbox& a, const FleetSandbox& b) { return a.name < b.name; });
  return all;
}

Status DeleteFromFleet(const GatewayAddress& address, const std::string& name) {
  if (!IsRunName(name)) {
    return Error{Code::kRefused, "'" + name + "' is not the name of a sandbox of agentic-ci",
                 "agentic-ci sandbox list --backend openshell --gateway ..."};
  }
  std::unique_ptr<Gateway> gateway = TRY(Reach(address));
  const Deadline deadline = Deadline::After(kFleetTime);
  Result<codec::Json> shown =
      gateway->openshell().AskJson({"sandbox", "get", name, "-o", "json"}, deadline);
  if (!shown.ok() && shown.error().code != Code::kNotFound) return std::move(shown).error();
  if (shown.ok()) {
    const codec::Json* labels = shown.value().Find("labels");
    if (labels == nullptr || labels->StringAt(kManagedLabel) != kManagedBy) {
      return Error{Code::kRefused, "agentic-ci did not make the sandbox '" + name + "'",
                   "openshell sandbox delete " + name};
    }
    TRY(gateway->openshell().Do({"sandbox", "delete", name}, deadline));
  }
  const int credentials = TRY(DeleteCredentials(gateway->openshell(), name, deadline));
  if (shown.ok() || credentials > 0) return Ok();
  return Error{Code::kNotFound, "the gateway has no sandbox '" + name + "'",
               "agentic-ci sandbox list --backend openshell --gateway ..."};
}

}  // namespace openshell
