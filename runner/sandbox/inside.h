// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/sandbox.h"

namespace sandbox {

enum class Rights {
  kAgent,   // The sandbox's files, with what the agent may do with them.
  kLayers,  // Every file that belongs to the sandbox's user, in its writable layers only.
};

// In a child just forked: takes the calling process to where the agent is, for good, with no more
// rights than said. It has no descriptors then but `kept`, and none of the environment. Not in the
// sandbox's pid namespace: nothing inside can see it or signal it.
Status Enter(const Inside& inside, Rights rights, std::vector<Fd*> kept);

}  // namespace sandbox
