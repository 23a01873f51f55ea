// SPDX-License-Identifier: Apache-2.0
#include "run/destinations.h"

#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "run/host_proxy.h"

namespace run {
namespace {

constexpr char kEventsVariable[] = "AGENTIC_CI_EVENTS_TO";

// Reads the target's credential from its variable.
Status TakeCredential(telemetry::EventTarget* target) {
  if (target->variable.empty()) return Ok();
  // Not EnvironmentSecret(), which would leave nothing for a second target.
  const SecretString value = sys::Environment(target->variable).value_or("");
  if (value.empty()) {
    return Error{Code::kSetup,
                 target->variable + ", the credential for " + target->Shown() + ", is not set"};
  }
  target->credential = Secret(value);
  return Ok();
}

}  // namespace

Result<telemetry::Destinations> FindDestinations(const Request& request) {
  telemetry::Destinations destinations;
  destinations.otlp = telemetry::ReadOtlpSettings(sys::Environment);
  std::vector<telemetry::EventTarget>& events = destinations.events;
  for (const std::string& text : request.events_to) {
    events.push_back(TRY(telemetry::ParseEventTarget(text).Context("--events-to")));
  }
  const std::string list = sys::Environment(kEventsVariable).value_or("");
  std::vector<telemetry::EventTarget> more =
      TRY(telemetry::ParseEventTargets(list).Context(kEventsVariable));
  for (telemetry::EventTarget& target : more) events.push_back(std::move(target));
  for (telemetry::EventTarget& target : events) TRY(TakeCredential(&target));
  if (!destinations.any()) return destinations;
  destinations.reach = {request.ca_file, HostProxy()};
  return destinations;
}

}  // namespace run
