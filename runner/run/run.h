// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "run/request.h"

namespace run {

class Driver;

// Carries out one run from event to report and gives the exit status of the command line
// (docs/reference/cli.md, "Exit codes"). An Error means that no agent was started, or that no
// report could be written (ErrorKind::kReported: the report says it); every other end, limits and
// signals included, has a report. `rules` are for the options of the configuration's tasks;
// `driver` (run/enclosure.h) is borrowed and may be null.
Result<int> Run(Request request, const OptionRules& rules, Driver* driver = nullptr);

// Returns `request` with what the configuration's task adds to it, as Run() will see it.
Result<Request> ResolveRequest(Request request, const OptionRules& rules);

}  // namespace run
