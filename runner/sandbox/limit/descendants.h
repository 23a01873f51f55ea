// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

namespace sandbox {

// Returns the processes that `process` and its children have started, those that ended and were not
// waited for among them. Orphans come back to the nearest process above that is a subreaper,
// prctl(2), so for that process these are all.
std::vector<pid_t> Descendants(pid_t process);

// Returns the children that the first thread of `process` has, in the order in which it started or
// adopted them. Empty if the kernel does not list them (CONFIG_PROC_CHILDREN).
std::vector<pid_t> Children(pid_t process);

// Kills the caller's descendants, and what they start meanwhile; waits for what is the caller's own
// child, up to some seconds. `spared` are left alive.
void KillDescendants(const std::vector<pid_t>& spared);

// Kills all processes of `user`, an id that only this agent has; for root alone. kill(-1) is one
// step for the kernel: nothing is forked in between. Returns when the signals are sent.
void KillUser(uid_t user);

}  // namespace sandbox
