// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policy/model/policy.h"

namespace caller {

// A policy may name a program by a symbolic link; the kernel only ever tells what is at its end.
// So whatever a path of the policy leads to in the sandbox counts as named as well (OpenShell's
// NET/opa.rs). Globs are not followed.
struct ProgramLinks {
  // The paths of the policy that lead to an executable, by its name in the kernel.
  std::map<std::string, std::vector<std::string>> by_target;
  std::vector<std::string>
      warnings;  // Links that could not be followed: only their own name counts.
};

// Follows them below `root`, the sandbox's root as a directory (/proc/PID/root of its pid 1), with
// at most 40 links in one path; directories on the way are followed as well. Call before the agent
// starts: later it could create links of its own. A path that does not exist is not a link.
ProgramLinks FollowProgramLinks(const policy::Policy& policy, int root);

}  // namespace caller
