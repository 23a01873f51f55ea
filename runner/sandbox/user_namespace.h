// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// One line of an id map: `inner` in the namespace is `outer` outside.
struct IdMapping {
  unsigned inner;
  unsigned outer;
};

// Writes the id maps of a process that was just cloned into a user namespace of its own. Only root
// may map ids that are not its own, and only then can the process still set its groups.
Status MapIds(pid_t pid, IdMapping uid, IdMapping gid, bool as_root);

// A user namespace without processes that holds just this mapping: what an id-mapped mount takes.
// Needs root.
Result<Fd> OpenUserNamespace(IdMapping uid, IdMapping gid);

// The kernel refused a namespace (`saved_errno` of `call`): kUnsupported with the hint that fits
// this host, where one is known.
Error NamespaceRefused(const char* call, int saved_errno);

// An error from inside the sandbox's construction. Permission denied there means that a namespace
// was given without its rights, as Ubuntu's AppArmor and Docker do: told as kUnsupported, with a
// hint.
Error ExplainFault(Error error);

}  // namespace sandbox
