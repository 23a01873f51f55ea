// SPDX-License-Identifier: Apache-2.0
// Sends what a run recorded to where platform teams look at many runs: OpenTelemetry's collectors,
// and targets for its records. Once, at the end of a run, by the supervisor.
#pragma once

#include "telemetry/destinations.h"
#include "telemetry/run_material.h"

namespace telemetry {

// Sends all of it at the same time, within two seconds. Never fails: what was not sent is a warning
// in the log, without a word of a header or a credential.
void Export(const FinishedRun& run, const Destinations& destinations);

}  // namespace telemetry
