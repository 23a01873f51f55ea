// SPDX-License-Identifier: Apache-2.0
// The confinement of the process that parses a layer. An exploited bug in an inflater or in the tar
// reader yields a process that sees one directory, which the same layer fills anyway.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace image {

// Confines a process that was just cloned into its own user, pid, net, ipc and uts namespaces, ids
// mapped to 0: takes a mount namespace, makes `directory` its root, gives up what it does not need
// (capabilities, Landlock if the kernel has it, limits) and allows only the system calls of
// reading, inflating and writing files. Threads may still be started. The caller closes
// `directory`, which still leads to the host. Returns what this kernel could not do, for the
// record.
Result<std::vector<std::string>> ConfineUnpacking(int directory);

}  // namespace image
