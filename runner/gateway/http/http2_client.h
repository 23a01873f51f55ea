// SPDX-License-Identifier: Apache-2.0
// HTTP/2 towards clients: many requests at once on one connection, each judged by itself.
#pragma once

#include <string_view>

#include "gateway/async/event_loop.h"
#include "gateway/async/limits.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"
#include "gateway/http/message.h"

namespace gateway {

// Reads requests and hands each to `handler`, until the client finishes, falls silent for
// kKeepAliveTimeout between two of them, or breaks the rules; then waits for those under way. Bytes
// that have arrived may stand in the stream's buffer. `scheme` is the scheme that every request
// must name. Everything is borrowed.
Task<void> ServeHttp2(EventLoop& loop, Stream& stream, std::string_view scheme,
                      RequestHandler& handler);

}  // namespace gateway
