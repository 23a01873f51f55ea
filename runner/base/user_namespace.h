// SPDX-License-Identifier: Apache-2.0
// User namespaces, for the code that starts a process in one: the sandbox, and the unpacking of
// images.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sys {

// One line of an id map: `inner` in the namespace is `outer` outside.
struct IdMapping {
  unsigned inner;
  unsigned outer;
};

// Writes the id maps of a process that was just cloned into a user namespace of its own. Only root
// may map ids that are not its own, and only then can the process still set its groups.
Status MapIds(pid_t pid, IdMapping uid, IdMapping gid, bool as_root);

// Returns the error of kUnsupported for a namespace that the kernel refused (`saved_errno` of
// `call`), with the hint that fits this host, if one is known.
Error NamespaceRefused(const char* call, int saved_errno);

// Returns the error of a step that is a right in a namespace of one's own: of errno, as
// ErrorKind::kNamespace. For a process that cannot look at the host.
Error NamespaceErrno(std::string_view call, int saved_errno = errno);

// Returns the command or setting that makes this host give an ordinary user namespaces, as far as
// that can be determined; or "". `from_root` is true if the caller is root, and is to become an
// ordinary user by it.
std::string NamespaceRemedy(bool from_root = false);

}  // namespace sys
