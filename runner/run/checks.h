// SPDX-License-Identifier: Apache-2.0
// `checks` of a task: the repository's own commands over the agent's patch, each in a fresh
// sandbox.
#pragma once

#include <functional>
#include <string>

#include "change/capture.h"
#include "report/record.h"
#include "run/outcome.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "run/request.h"

namespace run {

// The end of one sandbox's program, and what the gateway saw meanwhile.
struct CheckEnd {
  AgentEnd end;
  RunSigns signs;
};
using CheckRun =
    std::function<Result<CheckEnd>(const Request&, Plan&, ReportDirectory&, Recorder&)>;

// Copies the checkout, applies the patch of `changes` to the copy, and has `run` carry out each
// check of `plan` over it: with the checks' policy and without a credential. A check sees nothing
// that the agent or another check left outside the patch. Each has a report of its own in
// `place`/checks/N. Notes all in `recorder`, and gives the outcome of the whole run: success,
// refused because of the checks that did not pass, or how a signal ended them. An Error where a
// check could not be carried out.
Result<report::OutcomeRecord> RunChecks(const Request& request, Plan plan,
                                        const ReportDirectory& place,
                                        const change::ChangeSet& changes, Recorder& recorder,
                                        const CheckRun& run);

}  // namespace run
