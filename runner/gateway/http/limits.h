// SPDX-License-Identifier: Apache-2.0
// Bounds on HTTP messages and pooled connections.
#pragma once

#include <chrono>
#include <cstddef>

#include "gateway/async/limits.h"

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Interim answers, such as 103 Early Hints, before the answer proper.
constexpr int kInterimAnswersMax = 16;

// HTTP/2. Streams of one client connection at once; what may be sent ahead of its reader, per
// stream and per connection: by a client on this machine, and by a distant server (10 MB/s at 100
// ms). Both are kept at most once. A field counts for so much more than its bytes (RFC
// 9113, 6.5.2).
constexpr size_t kHttp2StreamsMax = 128;
constexpr size_t kHttp2UploadWindow = size_t{256} << 10;
constexpr size_t kHttp2ClientWindow = size_t{1} << 20;
constexpr size_t kHttp2AnswerWindow = size_t{1} << 20;
constexpr size_t kHttp2UpstreamWindow = size_t{4} << 20;
constexpr size_t kHttp2FieldOverhead = 32;

// Connections of one client to one server, where each may carry a single stream, and those that are
// just being closed.
constexpr size_t kHttp2ConnectionsMax = 2 * kHttp2StreamsMax;

// A head that may arrive may be passed on: nghttp2 counts up to 12 bytes more for each field, of
// which the shortest has 4 in HTTP/1.
constexpr size_t kHttp2SentHeadBytesMax = 4 * kResponseHeadBytesMax;

// Frames gathered into one write.
constexpr size_t kHttp2WriteBytes = 2 * kStreamBufferBytes;

// The frames that ask for work and bring none: this many at once, more per second, and more for
// each body byte moved and each answer given. A reset counts for several (CVE-2023-44487).
constexpr double kHttp2Patience = 1000;
constexpr double kHttp2PatiencePerSecond = 10;
constexpr double kHttp2ResetCost = 4;
constexpr size_t kHttp2UnsentAcksMax = 2000;  // More than one read can ask for.

// The interval at which an idle connection is checked; its bounds are kKeepAliveTimeout and
// kHeadTimeout.
constexpr milliseconds kHttp2CheckEvery = seconds(15);

// The time for the last frames of a connection to leave.
constexpr milliseconds kHttp2FarewellTimeout = seconds(2);

// Connections to servers between two requests. Servers keep theirs for 60 seconds and more; the
// shorter, the rarer a request meets a server that is just closing.
constexpr size_t kIdleUpstreamsMax = 128;
constexpr milliseconds kIdleUpstreamTimeout = seconds(30);
constexpr milliseconds kIdleUpstreamSweep = seconds(5);

// Silence in the middle of a framed body. Streams of events have no limit but the run's own.
constexpr milliseconds kBodyIdleTimeout = minutes(15);

// Silence in both directions of a raw tunnel or a WebSocket, which send keep-alives of their own.
constexpr milliseconds kTunnelIdleTimeout = minutes(60);

}  // namespace gateway
