// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "run/request.h"

namespace run {

// How the text of an Error begins that came before there was a report directory: what lies in the
// place named for it is not of this run.
inline constexpr char kPreparingReport[] = "preparing the report directory";

// Carries out one run from event to report and gives the exit status of the command line
// (docs/reference/cli.md, "Exit codes"). An Error means that no agent was started, or that no
// report could be written; every other end, limits and signals included, has a report.
Result<int> Run(const Request& request);

}  // namespace run
