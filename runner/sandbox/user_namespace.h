// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/user_namespace.h"

namespace sandbox {

using sys::IdMapping;
using sys::MapIds;
using sys::NamespaceErrno;
using sys::NamespaceRefused;

// Makes a user namespace without processes that holds just this mapping: what an id-mapped mount
// takes. Needs root.
Result<Fd> OpenUserNamespace(IdMapping uid, IdMapping gid);

// Returns an error from inside the sandbox's construction. Permission denied there means that a
// namespace was given without its rights, as Ubuntu's AppArmor and Docker do: told as kUnsupported,
// with a hint.
Error ExplainFault(Error error);

}  // namespace sandbox
