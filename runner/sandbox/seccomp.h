// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// What the filter does with connect(2).
enum class Connects {
  kFree,
  kWatched,  // The caller waits until the owner of the filter's listener has seen it.
};

// Whether the agent may choose the processors it runs on: not where they are its limit.
enum class Processors { kFree, kPinned };

// The agent's system-call filter as a program for the kernel: everything is allowed except what
// OpenShell's child filter denies (EPERM), what else attacks the kernel from a container, and
// `clone3`, which answers ENOSYS so that programs fall back to `clone`, whose flags can be read.
Result<std::vector<sock_filter>> BuildFilter(Connects connects,
                                             Processors processors = Processors::kFree);

// Installs it for the calling process and all it starts. Needs no_new_privs. `connects` as it was
// built; gives the listener of kWatched (sandbox/connect_watch.h). There can be one for a process
// and all above it: where a container's runtime has it already, this fails and installs nothing.
Result<Fd> ApplyFilter(const std::vector<sock_filter>& filter, Connects connects);

}  // namespace sandbox
