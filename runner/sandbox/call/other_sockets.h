// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace sandbox {

// Returns the inodes of the sockets that processes of the host have open, as far as can be read,
// without those of the processes that `members` lists. That is asked last, and what has ended by
// then does not count: no process that a member starts meanwhile is taken for another.
std::set<uint64_t> SocketsOfOthers(const std::function<std::vector<pid_t>()>& members);

}  // namespace sandbox
