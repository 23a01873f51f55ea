// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "caller/identity.h"

namespace caller {

// Asks the kernel for the TCP socket with exactly these ends (sock_diag(7), one look-up and no
// list) and gives its inode, 0 if no process holds it any more. `netlink` is a NETLINK_SOCK_DIAG
// socket of the network namespace in question, not used by anything else meanwhile. Fails with
// kNotFound if there is no such socket, or if this kernel was built without the answer; with kIo if
// it could not be asked.
Result<uint64_t> AskSocketInode(int netlink, const Endpoint& local, const Endpoint& remote);

}  // namespace caller
