// SPDX-License-Identifier: Apache-2.0
// Serves one accepted connection of the proxy: finds its owner, asks the policy, then tunnels or
// forwards. transparent.h is for captured ones.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "caller/identity.h"
#include "codec/wire/http_head.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"
#include "gateway/http/authority.h"
#include "gateway/services.h"
#include "policy/decide/compiled.h"

namespace gateway {

// Serves one accepted connection from first byte to last: who owns it, what its first request is,
// and then a tunnel (CONNECT) or one forwarded request. Never fails: what goes wrong is recorded
// and answered.
Task<void> ServeConnection(Services& services, Fd socket);

// Serve the parts of it. `client` is the accepted connection, its first head already read.
Task<void> ServeTunnel(Services& services, const caller::Owner& owner, Stream& client,
                       const codec::RequestHead& head);
// Serves a captured connection (transparent.h) to `authority`: a tunnel that is never answered,
// only reset.
Task<void> ServeCapturedTunnel(Services& services, const caller::Owner& owner, Stream& client,
                               Authority authority);
Task<void> ServeForward(Services& services, const caller::Owner& owner, Stream& client,
                        const codec::RequestHead& head);

// Returns one end of a TCP socket, nullopt if it has none any more. `call` is getsockname or
// getpeername.
std::optional<caller::Endpoint> EndOf(int socket, int (*call)(int, sockaddr*, socklen_t*));

// The policy's decision on `owner`'s connection, whose `route` was found for Judged(owner), and the
// engine that made it: the policy (kOpa) or, where only the owner's programs are in the way, what
// is not known of them (kIdentity), which no line of a policy changes.
struct OwnerDecision {
  policy::Decision decision;
  record::Engine engine = record::Engine::kNone;
};
OwnerDecision DecideOwner(const caller::Owner& owner, const policy::Route& route);

// Makes an event about a connection of `owner`.
record::Event NewConnectionEvent(const caller::Owner& owner, record::Event::Outcome outcome);

}  // namespace gateway
