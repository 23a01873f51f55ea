// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/event_loop.h"
#include "gateway/stream.h"
#include "gateway/task.h"

namespace gateway {

// Copies bytes both ways, unmodified, until both sides have finished, one has failed, or nothing
// has moved for kTunnelIdleTimeout. What is buffered in either stream goes first. One side may
// finish while the other goes on.
Task<Done> Relay(EventLoop& loop, Stream& a, Stream& b);

}  // namespace gateway
