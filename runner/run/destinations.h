// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "run/request.h"
#include "telemetry/export.h"

namespace run {

// Returns where the run's telemetry and records go: OpenTelemetry's variables, `--events-to` and
// AGENTIC_CI_EVENTS_TO, with their credentials. Fails with
// kUsage for a target that is not one, with kSetup if its credential is missing.
Result<telemetry::Destinations> FindDestinations(const Request& request);

}  // namespace run
