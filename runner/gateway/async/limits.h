// SPDX-License-Identifier: Apache-2.0
// Bounds of streams.
#pragma once

#include <chrono>
#include <cstddef>

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Heads. OpenShell's bounds: a CONNECT head, and the head of any other request.
constexpr size_t kConnectHeadBytesMax = 8192;
constexpr size_t kRequestHeadBytesMax = 16384;

// Servers send more than clients: cookies and content security policies.
constexpr size_t kResponseHeadBytesMax = 65536;

// The buffer of one direction of one connection. Reading stops when it is full: the back-pressure.
// It is allocated when bytes arrive and freed when they have gone; four TLS records cost one call
// to the kernel.
constexpr size_t kStreamBufferBytes = 65536;
constexpr size_t kSpareBuffersMax = 16;

// OpenSSL's own, of which it gives back each when it is empty: three records.
constexpr size_t kTlsBufferBytes = 50000;

// A head must fit into a buffer; buffers grow up to this for heads only.
constexpr size_t kStreamBufferBytesMax = kResponseHeadBytesMax + kStreamBufferBytes;
static_assert(kRequestHeadBytesMax <= kStreamBufferBytesMax);
static_assert(kConnectHeadBytesMax <= kRequestHeadBytesMax);

// A client sends its head within this or is cut off (slow loris); so does a TLS handshake end.
constexpr milliseconds kHeadTimeout = seconds(30);
constexpr milliseconds kHandshakeTimeout = seconds(20);

// A kept-alive tunnel may wait this long for its next request.
constexpr milliseconds kKeepAliveTimeout = minutes(5);

// A peer that takes nothing of what is written to it.
constexpr milliseconds kWriteTimeout = minutes(5);
static_assert(kHeadTimeout < kKeepAliveTimeout);

// After a refusal the rest of the request is read and dropped, up to this time and size: closing
// with unread bytes would make the kernel throw the answer away with them.
constexpr milliseconds kLingerTimeout = seconds(2);
constexpr size_t kLingerBytesMax = size_t{16} << 20;

}  // namespace gateway
