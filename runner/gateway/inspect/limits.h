// SPDX-License-Identifier: Apache-2.0
// Bounds on bodies and messages that are inspected.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gateway/async/limits.h"

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A compressed body that is looked into: this much for nothing, then this many bytes for each that
// came. Deflate can make a thousand of one.
constexpr size_t kInflatedBytesFree = size_t{1} << 20;
constexpr size_t kInflatedPerByteMax = 100;

// WebSocket messages that are looked into (OpenShell's bounds): what a text message and its frames
// may be, what a binary frame may be that is passed on unread, and how long a message may take to
// arrive, each piece of it and as a whole.
constexpr size_t kWebSocketMessageBytesMax = size_t{4} << 20;
constexpr size_t kWebSocketFragmentsMax = 4096;
constexpr uint64_t kWebSocketFrameBytesMax = uint64_t{16} << 20;
static_assert(kWebSocketMessageBytesMax <= kWebSocketFrameBytesMax);
constexpr milliseconds kWebSocketPieceTimeout = seconds(30);
constexpr milliseconds kWebSocketMessageTimeout = seconds(120);

// Messages above the smaller size that are put together at once, over all connections: what they
// hold is the product. Smaller ones are no more than a connection's buffers.
constexpr size_t kWebSocketSmallBytesMax = size_t{16} << 10;
constexpr size_t kWebSocketLargeMax = 32;

// Further ones wait, and their clients with them; beyond this number they are told to try later.
constexpr size_t kWebSocketWaitingMax = 64;
constexpr milliseconds kWebSocketRoomInterval{100};

// The time for the server's frame under way to end, and for the client to answer a close frame.
constexpr milliseconds kWebSocketFarewellTimeout = seconds(2);

}  // namespace gateway
