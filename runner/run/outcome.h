// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "change/gate.h"
#include "report/record.h"
#include "run/supervise.h"

namespace run {

// What the kernel counted against the limits while the agent ran.
struct LimitSigns {
  bool out_of_memory = false;
  bool forks_refused = false;
  bool disk_full = false;
  std::string budget =
      {};  // "tokens", "cost", "requests": the one that refused a request; or empty.
  bool nothing_changed = false;  // The agent left the checkout as it was.
  std::string refused_by =
      {};  // The host whose models refused the credential, every time; or empty.
};

// How the run ended and what the command line exits with. Pure and total. A limit that the agent
// survived is recorded and does not fail the run, but for a budget that refused it its model; gates
// judge only what a successful agent leaves.
report::OutcomeRecord DecideOutcome(const AgentEnd& end, const LimitSigns& signs,
                                    const change::Verdict& verdict);

}  // namespace run
