// SPDX-License-Identifier: Apache-2.0
// Bounds on the gateway as a whole. Each of its rooms has a limits.h for its own.
#pragma once

#include <chrono>
#include <cstddef>

#include "gateway/http/limits.h"

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Connections at once, each with one to a server as well, and those that are kept. Package managers
// open about 50; a test suite that talks to a fake service, hundreds.
constexpr size_t kConnectionsMax = 1024;
constexpr size_t kOwnDescriptorsMax = 144;

// Streams of HTTP/2 towards a server of HTTP/1 take one each on top of that: the soft limit is
// raised to this where the hard one allows it. A request that finds none left is answered 502.
constexpr size_t kDescriptorsMax = 8192;
static_assert(2 * kConnectionsMax + kIdleUpstreamsMax + kOwnDescriptorsMax < kDescriptorsMax);

// Freed memory that the process keeps at hand.
constexpr int kAllocatorBytes = 4 << 20;

// The proxy's, the transparent ones (on a kernel without nf_tables one per port and family), the
// name service's.
constexpr int kGatewaySocketsMax = 80;

// A model that thinks before its first byte; the clients' own limit is 10 minutes.
constexpr milliseconds kResponseHeadTimeout = minutes(15);

// Silence in a body that only the end of the connection ends: it may simply be complete.
constexpr milliseconds kUnframedBodyIdleTimeout = seconds(60);

// The supervisor hashes an executable on first sight; the largest agent (about 250 MB) takes 1 s.
constexpr milliseconds kIdentityTimeout = seconds(30);

// The kernel holds about 270 in a socket's buffer.
constexpr size_t kQuestionsAtOnceMax = 128;

// OpenShell's bounds on the hosts whose leaf certificates are kept, and on upstream TLS sessions.
constexpr size_t kLeafCertificatesMax = 256;
constexpr size_t kUpstreamSessionsMax = 256;

// Control messages from the supervisor. The longest tells who a refused connection is from.
constexpr size_t kControlBytesMax = size_t{33} << 10;
constexpr size_t kUpdateTextBytesMax = 256;  // A hash, or why an update was rejected.
static_assert(kUpdateTextBytesMax + 16 < kControlBytesMax);

// A policy's text is at most 256 KiB; its values with their presets written out, some times that.
constexpr size_t kPolicyWireBytesMax = size_t{32} << 20;
constexpr milliseconds kStartTimeout = seconds(120);
constexpr size_t kReadyMessageBytesMax = 32768;

// And what it tells later: a host, or a token.
constexpr size_t kNewsBytesMax = 16384;
constexpr size_t kNewsTextBytesMax = kNewsBytesMax - 16;
constexpr size_t kCaBundleBytesMax = size_t{8} << 20;

// The time for which every request gets a failure before another try, and the interval at which a
// request looks for a token that another one fetches.
constexpr milliseconds kTokenRetry = seconds(5);
constexpr milliseconds kTokenPoll{20};
// The pauses before a token service that is busy or down is asked again.
constexpr milliseconds kTokenPauses[] = {milliseconds(100), milliseconds(1000)};

}  // namespace gateway
