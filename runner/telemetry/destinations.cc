// SPDX-License-Identifier: Apache-2.0
#include "telemetry/destinations.h"

#include <utility>

namespace telemetry {
namespace {

constexpr char kEventsVariable[] = "AGENTIC_CI_EVENTS_TO";

// Reads the target's credential from its variable.
Status TakeCredential(const VariableReader& variable, EventTarget* target) {
  if (target->variable.empty()) return Ok();
  const SecretString value = variable(target->variable).value_or("");
  if (value.empty()) {
    return Error{Code::kSetup,
                 target->variable + ", the credential for " + target->Shown() + ", is not set"};
  }
  target->credential = Secret(value);
  return Ok();
}

}  // namespace

Result<Destinations> FindDestinations(const std::vector<std::string>& targets,
                                      const VariableReader& variable) {
  Destinations destinations;
  destinations.otlp = ReadOtlpSettings(variable);
  std::vector<EventTarget>& events = destinations.events;
  for (const std::string& text : targets) {
    events.push_back(TRY(ParseEventTarget(text).Context("--events-to")));
  }
  const std::string list = variable(kEventsVariable).value_or("");
  std::vector<EventTarget> more = TRY(ParseEventTargets(list).Context(kEventsVariable));
  for (EventTarget& target : more) events.push_back(std::move(target));
  for (EventTarget& target : events) TRY(TakeCredential(variable, &target));
  return destinations;
}

}  // namespace telemetry
