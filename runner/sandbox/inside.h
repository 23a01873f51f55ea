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

// Takes the calling process, a child just forked, to where the agent is, for good, with no more
// than `rights`. It then has no descriptors but `kept`, and no environment. It is not in the
// sandbox's pid namespace: nothing inside can see it or signal it.
Status Enter(const Inside& inside, Rights rights, std::vector<Fd*> kept);

}  // namespace sandbox
