// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "forge/event.h"
#include "run/trusted/trusted_file.h"

namespace run {

// The trust in the people who asked for this run, which decides about secrets.
struct Trust {
  bool trusted = false;
  std::string reason;     // One line.
  std::string hint = {};  // The command that would make it trusted, if there is one.
  bool model = false;     // Not trusted, but it may have its model's credential: JudgeActors().
};

// Judges the trust. Code that is not known to come from the repository itself is untrusted: its run
// gets no secrets, and neither does one under a CI system whose events are not read. Everything
// else was started by a person who may write to the repository, or at a terminal. Pure.
Trust JudgeTrust(const forge::Event& event);

// Returns the ref that the repository's policy and configuration are read from: `asked`
// (--policy-ref), else the commit that the event says is the base repository's own, never what
// happens to be checked out; outside CI, HEAD. Fails with kSetup where it has to be given, with
// kRefused for the pull request's own branch or another name of what it proposes.
Result<TrustedRef> FindTrustedRef(const forge::Event& event, const std::string& asked);

}  // namespace run
