// SPDX-License-Identifier: Apache-2.0
// Builds the seccomp filter: which system calls the agent may make, and which the broker carries
// out.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// The filter's treatment of connect(2).
enum class Connects {
  kFree,
  kWatched,   // The caller waits until the owner of the filter's listener has seen it; so does
              // one of rename(2).
  kBrokered,  // Likewise, and with every other call about sockets and files that it carries out.
};

// The agent may choose the processors that it runs on, or may not, where they are its limit.
enum class Processors { kFree, kPinned };

// The answers to changes of owners and ids, and to making devices: the kernel's, or that they
// succeed though nothing is changed, so that package managers go on (the only id that is mapped is
// the caller's).
enum class Owners { kKernel, kFaked };

// The filter's additions where no namespace holds the agent: it shares ids, network, processes and
// System V objects with what else runs on the host.
struct SharedHost {
  bool shares_user = false;  // Its user has other processes: it changes its own alone.
  bool truncates = false;    // Landlock cannot keep it from truncating files (before ABI 3).
  bool signals = false;      // It may signal others of its user: Landlock cannot forbid it (ABI 6).
  std::vector<pid_t> spared = {};         // Ours, which it shall never reach,
  std::vector<pid_t> spared_groups = {};  // and the process groups that they are in.
};

// Builds the agent's system-call filter as a program for the kernel: everything is allowed except
// what OpenShell's child filter denies (EPERM), what else attacks the kernel from a container, and
// `clone3`, which answers ENOSYS so that programs fall back to `clone`, whose flags can be read.
// `shared` is null if namespaces hold the agent; otherwise `connects` is kBrokered.
Result<std::vector<sock_filter>> BuildFilter(Connects connects,
                                             Processors processors = Processors::kFree,
                                             const SharedHost* shared = nullptr,
                                             Owners owners = Owners::kKernel);

// Installs it for the calling process and all it starts. Needs no_new_privs. `connects` as it was
// built; gives the listener, but for kFree (sandbox/call/connect_watch.h). There can be one for a
// process and all above it: where a container's runtime has it already, this fails and installs
// nothing.
Result<Fd> ApplyFilter(const std::vector<sock_filter>& filter, Connects connects);

}  // namespace sandbox
