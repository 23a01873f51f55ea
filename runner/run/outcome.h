// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "change/gate.h"
#include "report/record.h"
#include "run/agent_end.h"

namespace run {

// Observations of a run beside its end.
struct RunSigns {
  // The budget that refused a request to a model ("tokens", "cost", "requests"), or empty: some
  // agents end with 0 all the same.
  std::string budget = {};
  std::string refused_by = {};   // The host whose models refused the credential, every time.
  bool nothing_changed = false;  // The agent left the checkout as it was.
  // Set for a known agent only, since requests of others are not known to be their work: the HTTP
  // status of its model's last answer (0 if there was none), whether that broke off, and the
  // model's host if the policy refused it.
  int64_t model_status = 0;
  bool model_broke_off = false;
  std::string model_denied = {};
};

// Decides how the run ended and what the command line exits with. Pure and total. Gates judge only
// what a successful agent leaves.
report::OutcomeRecord DecideOutcome(const AgentEnd& end, const RunSigns& signs,
                                    const change::Verdict& verdict);

// Returns `outcome`, or kFindings in place of a success if one of the agent's own `findings` is as
// severe as `fail_on` (Request::fail_on). Gates have judged theirs already. Pure.
report::OutcomeRecord JudgeFindings(report::OutcomeRecord outcome, std::string_view fail_on,
                                    const std::vector<report::Finding>& findings);

}  // namespace run
