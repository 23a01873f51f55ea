// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"
#include "gateway/http/limits.h"
#include "gateway/http/message.h"

namespace gateway {

// One side of a relay: what comes from a peer, and what goes to it.
struct RelayEnd {
  BodyReader& from;
  BodyWriter& to;
};

// Copies bytes both ways, unmodified, until both sides have finished, one has failed, or nothing
// has moved for kTunnelIdleTimeout. One side may finish while the other goes on.
Task<void> Relay(EventLoop& loop, RelayEnd a, RelayEnd b);

// Does the same between two connections. Bytes that are buffered in either go first.
Task<void> Relay(EventLoop& loop, Stream& a, Stream& b);

}  // namespace gateway
