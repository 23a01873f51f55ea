// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "caller/identity.h"

namespace caller {

// Finds a connection in the text of /proc/PID/net/tcp or tcp6 (proc_net(5)) and gives its socket's
// inode. Only an established connection with exactly these ends counts; v4 ends match in either
// table. Lines that are not of that form are skipped.
std::optional<uint64_t> FindSocketInode(std::string_view table, const Endpoint& local,
                                        const Endpoint& remote);

}  // namespace caller
