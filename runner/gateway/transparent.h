// SPDX-License-Identifier: Apache-2.0
// Connections of programs without proxy support. The kernel hands each to one listener, with the
// destination it wanted as the socket's own address; from there on it is judged like a CONNECT to
// that destination, but without a response: a refused connection is reset.
#pragma once

#include "base/fd.h"
#include "caller/identity.h"
#include "gateway/async/task.h"
#include "gateway/services.h"
#include "policy/model/policy.h"

namespace gateway {

// Serves one captured connection from first byte to last. Never fails: what goes wrong is recorded.
Task<void> ServeCaptured(Services& services, Fd socket);

// False if ServeCaptured refuses every connection to `remote` under this policy, whatever the
// program: an address that stands for no name and that no endpoint covers.
bool MayServeCaptured(const policy::Policy& policy, const caller::Endpoint& remote);

// Records the refusal of such a connection, which `owner` was not even let begin.
void RecordRefusedConnect(Services& services, const caller::Owner& owner,
                          const caller::Endpoint& remote);

}  // namespace gateway
