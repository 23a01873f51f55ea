// SPDX-License-Identifier: Apache-2.0
// Sends what a run recorded to where platform teams look at many runs: OpenTelemetry's collectors,
// and targets for its records. Once, at the end of a run, by the supervisor.
#pragma once

#include <string>
#include <vector>

#include "net/proxy.h"
#include "telemetry/event_delivery.h"
#include "telemetry/event_target.h"
#include "telemetry/run_material.h"
#include "telemetry/settings.h"

namespace telemetry {

struct Destinations {
  OtlpSettings otlp;
  std::vector<EventTarget> events;
  Reach reach;

  // Returns whether something is to be sent, or to be said about why it is not.
  bool any() const { return otlp.on() || !otlp.faults.empty() || !events.empty(); }
};

// Sends all of it at the same time, within two seconds. Never fails: what was not sent is a warning
// in the log, without a word of a header or a credential.
void Export(const FinishedRun& run, const Destinations& destinations);

}  // namespace telemetry
