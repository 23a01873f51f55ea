// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "forge/event.h"

namespace run {

// Who asked for this run, and what follows for secrets.
struct Trust {
  bool trusted = false;
  std::string reason;  // One line.
};

// A pull request from a fork is a stranger's: its run gets no secrets. Everything else was started
// by somebody who may write to the repository, or by a person at a terminal. Pure.
Trust JudgeTrust(const forge::Event& event);

// The ref that repository policy is read from when nobody named one: the event's base, else HEAD. A
// pull request never judges itself.
std::string PolicyRef(const forge::Event& event, const std::string& asked);

}  // namespace run
