// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/event_loop.h"
#include "gateway/message.h"
#include "gateway/stream.h"
#include "gateway/task.h"

namespace gateway {

// One side of a relay: what comes from a peer, and what goes to it.
struct RelayEnd {
  BodyReader& from;
  BodyWriter& to;
};

// Copies bytes both ways, unmodified, until both sides have finished, one has failed, or nothing
// has moved for kTunnelIdleTimeout. One side may finish while the other goes on.
Task<Done> Relay(EventLoop& loop, RelayEnd a, RelayEnd b);

// The same between two connections. What is buffered in either goes first.
Task<Done> Relay(EventLoop& loop, Stream& a, Stream& b);

}  // namespace gateway
