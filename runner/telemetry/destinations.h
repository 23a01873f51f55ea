// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "telemetry/event_delivery.h"
#include "telemetry/event_target.h"
#include "telemetry/settings.h"

namespace telemetry {

// Where a run's telemetry and records go.
struct Destinations {
  OtlpSettings otlp;
  std::vector<EventTarget> events;
  Reach reach;  // The caller's to fill in.

  // Returns whether something is to be sent, or to be said about why it is not.
  bool any() const { return otlp.on() || !otlp.faults.empty() || !events.empty(); }
};

// Returns what OpenTelemetry's variables, `targets` (of `--events-to`) and AGENTIC_CI_EVENTS_TO
// name, with the credentials of targets. Fails with kUsage for a target that is not one, with
// kSetup if its credential is missing.
Result<Destinations> FindDestinations(const std::vector<std::string>& targets,
                                      const VariableReader& variable);

}  // namespace telemetry
