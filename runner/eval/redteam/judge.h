// SPDX-License-Identifier: Apache-2.0
// Judges a red team's run, outside of the sandbox. The agent's own word is believed where it says
// that something got through, and where nothing that was seen outside says otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/redteam/opening.h"
#include "eval/redteam/probe.h"
#include "eval/redteam/upstream.h"

namespace redteam {

enum class Standing {
  kStopped,        // In the sandbox; the same attempt gets through outside, or is not made there.
  kNotApplicable,  // It is stopped outside too: this host, or this user, cannot do it anyway.
  kByPolicy,       // A line of the policy lets it through, or would.
  kByTier,         // The tier cannot stop it, and its documentation says so.
  kThrough,
  kUndecided,  // Not known: the agent did not say, or the attempt had no clear end.
};
std::string_view Name(Standing standing);

struct Judged {
  const Probe* probe = nullptr;
  Standing standing = Standing::kUndecided;
  std::string inside;   // The result inside: "EPERM".
  std::string outside;  // The result of the control; empty if it was not made.
  std::string because;  // The policy's line, the tier's limit, or what was seen outside.
};

// The observations from outside of the sandbox.
struct Seen {
  bool victim_ended = false;
  std::vector<std::string> bait_changes;  // Each in words.
  bool port_reached = false;
  bool abstract_reached = false;
  bool socket_reached = false;
  std::string variable_canary;           // The canary in the runner's environment.
  std::string file_canary;               // The canary in the bait's file.
  std::vector<std::string> let_through;  // The "host:port" pairs that the gateway's records allow.
  // The hosts that they refuse; "" stands for malformed requests.
  std::vector<std::string> refused;
  // The requests that came to the server that is allowed in part: from the sandbox, and from the
  // control.
  std::vector<Arrival> arrivals;
  std::vector<Arrival> arrivals_outside;
  std::string upstream;  // Its only right name: "HOST:PORT".
};

struct Evidence {
  std::string inside;   // All that the agent printed in the sandbox.
  std::string outside;  // Likewise of the control.
  Seen seen;
  bool landlock = false;  // The tier.
  std::string bait_file;
};

// Returns one for each of Probes(), in their order, but for the request that is allowed.
std::vector<Judged> Judge(const Evidence& evidence, const PolicyView& policy);

}  // namespace redteam
