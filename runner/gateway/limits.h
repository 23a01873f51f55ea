// SPDX-License-Identifier: Apache-2.0
// Every bound of the gateway, each with its reason. Everything that comes from the sandbox or from
// a server is bounded by one of these.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Heads. OpenShell's bounds: a CONNECT head, and the head of any other request.
constexpr size_t kConnectHeadBytesMax = 8192;
constexpr size_t kRequestHeadBytesMax = 16384;
// Servers send more than clients: cookies and content security policies.
constexpr size_t kResponseHeadBytesMax = 65536;

// 103 Early Hints and the like, before the answer proper.
constexpr int kInterimAnswersMax = 16;

// What one direction of one connection holds. Reading stops when it is full: the back-pressure.
// Made when bytes arrive and freed when they have gone; four TLS records cost one call to the
// kernel.
constexpr size_t kStreamBufferBytes = 65536;
constexpr size_t kSpareBuffersMax = 16;
// OpenSSL's own, of which it gives back each when it is empty: three records.
constexpr size_t kTlsBufferBytes = 50000;
// A head must fit into a buffer; buffers grow up to this for heads only.
constexpr size_t kStreamBufferBytesMax = kResponseHeadBytesMax + kStreamBufferBytes;
static_assert(kRequestHeadBytesMax <= kStreamBufferBytesMax);
static_assert(kConnectHeadBytesMax <= kRequestHeadBytesMax);

// What a filter of a streamed request body may hold back: the longest thing it looks for.
constexpr size_t kBodyFilterHeldBytesMax = 4096;

// The fields of one part of a form: as much as a whole head may have.
constexpr size_t kPartFieldsBytesMax = kRequestHeadBytesMax;

// A compressed body that is looked into: this much for nothing, then so many bytes for each that
// came. Deflate can make a thousand of one.
constexpr size_t kInflatedBytesFree = size_t{1} << 20;
constexpr size_t kInflatedPerByteMax = 100;

// HTTP/2. Streams of one client connection at once; what may be sent ahead of its reader, per
// stream and per connection: by a client next door, and by a server a world away (10 MB/s at 100
// ms). Both are kept at most once. A field counts for so much more than its bytes (RFC
// 9113, 6.5.2).
constexpr size_t kHttp2StreamsMax = 128;
constexpr size_t kHttp2UploadWindow = size_t{256} << 10;
constexpr size_t kHttp2ClientWindow = size_t{1} << 20;
constexpr size_t kHttp2AnswerWindow = size_t{1} << 20;
constexpr size_t kHttp2UpstreamWindow = size_t{4} << 20;
constexpr size_t kHttp2FieldOverhead = 32;
// Frames gathered into one write.
constexpr size_t kHttp2WriteBytes = 2 * kStreamBufferBytes;
// Frames that ask for work and bring none: so many at once, so many more per second, and more for
// each body byte moved and each answer given. A reset counts for several (CVE-2023-44487).
constexpr double kHttp2Patience = 1000;
constexpr double kHttp2PatiencePerSecond = 10;
constexpr double kHttp2ResetCost = 4;
constexpr size_t kHttp2UnsentAcksMax = 2000;  // More than one read can ask for.
// How often an idle connection is looked at; its bounds are kKeepAliveTimeout and kHeadTimeout.
constexpr milliseconds kHttp2CheckEvery = seconds(15);
// For the last frames of a connection to leave.
constexpr milliseconds kHttp2FarewellTimeout = seconds(2);

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
// Further ones wait, and their clients with them; more than so many are told to try later.
constexpr size_t kWebSocketWaitingMax = 64;
constexpr milliseconds kWebSocketRoomInterval{100};
// For the server's frame under way to end, and for the client to answer a close frame.
constexpr milliseconds kWebSocketFarewellTimeout = seconds(2);

// Connections to servers between two requests. Servers keep theirs for 60 seconds and more; the
// shorter, the rarer a request meets a server that is just closing.
constexpr size_t kIdleUpstreamsMax = 128;
constexpr milliseconds kIdleUpstreamTimeout = seconds(30);
constexpr milliseconds kIdleUpstreamSweep = seconds(5);

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
constexpr int kDoorsMax = 80;

// A client sends its head within this or is cut off (slow loris); so does a TLS handshake end.
constexpr milliseconds kHeadTimeout = seconds(30);
constexpr milliseconds kHandshakeTimeout = seconds(20);
// A kept-alive tunnel may wait this long for its next request.
constexpr milliseconds kKeepAliveTimeout = minutes(5);
// A model that thinks before its first byte; the clients' own limit is 10 minutes.
constexpr milliseconds kResponseHeadTimeout = minutes(15);
// Silence in the middle of a framed body. Streams of events have no limit but the run's own.
constexpr milliseconds kBodyIdleTimeout = minutes(15);
// Silence in a body that only the end of the connection ends: it may simply be complete.
constexpr milliseconds kUnframedBodyIdleTimeout = seconds(60);
// Silence in both directions of a raw tunnel or a WebSocket, which send keep-alives of their own.
constexpr milliseconds kTunnelIdleTimeout = minutes(60);
// A peer that takes nothing of what is written to it.
constexpr milliseconds kWriteTimeout = minutes(5);
static_assert(kHeadTimeout < kKeepAliveTimeout);

// Per address; a host has several, so that all of them together stay within a client's patience.
constexpr milliseconds kConnectTimeout = seconds(10);
constexpr size_t kAddressesMax = 16;
constexpr milliseconds kResolveTimeout = seconds(15);
constexpr size_t kHostsFileBytesMax = size_t{1} << 20;

// After a refusal the rest of the request is read and dropped for so long and so much: closing with
// unread bytes would make the kernel throw the answer away with them.
constexpr milliseconds kLingerTimeout = seconds(2);
constexpr size_t kLingerBytesMax = size_t{16} << 20;

// The supervisor hashes an executable on first sight; the largest agent (about 250 MB) takes 1 s.
constexpr milliseconds kIdentityTimeout = seconds(30);
// The kernel holds about 270 in a socket's buffer.
constexpr size_t kQuestionsAtOnceMax = 128;

// As OpenShell: leaf certificates of so many hosts are kept; upstream TLS sessions likewise.
constexpr size_t kLeafCertificatesMax = 256;
constexpr size_t kUpstreamSessionsMax = 256;

// A sandbox that knocks for hours may not fill the disk of its host: then nothing passes any more.
constexpr size_t kRecordBytesMax = size_t{512} << 20;
// Lines for people that wait to be written together.
constexpr size_t kRecordLinesBytesMax = size_t{64} << 10;
// One record: the path and the reason in it.
constexpr size_t kRecordPathBytesMax = 1024;
constexpr size_t kReasonBytesMax = 256;   // OpenShell's, in the shorthand.
constexpr size_t kMessageBytesMax = 120;  // Likewise.

// The sandbox's name service; OpenShell's bounds. Names keep their addresses while they are used.
constexpr size_t kSyntheticNamesMax = 1024;
constexpr uint32_t kNameTtlSeconds = 30;
constexpr size_t kNameQueriesAtOnceMax = 64;
constexpr uint16_t kDnsPort = 53;

// Control messages from the supervisor.
constexpr size_t kControlBytesMax = 320;
constexpr size_t kUpdateTextBytesMax = 256;  // A hash, or why an update was rejected.
static_assert(kUpdateTextBytesMax + 16 < kControlBytesMax);
// A policy's text is at most 256 KiB; its values with their presets written out, some times that.
constexpr size_t kPolicyWireBytesMax = size_t{32} << 20;
constexpr milliseconds kStartTimeout = seconds(20);
constexpr size_t kReadyMessageBytesMax = 16384;
// And what it tells later: a host, or a token.
constexpr size_t kNewsBytesMax = 16384;
constexpr size_t kCaBundleBytesMax = size_t{8} << 20;

// Budgets. A model's answer, or one event of it, that is looked into for what it used; and the
// largest request whose body is read for the model it names (Anthropic takes 32 MB).
constexpr size_t kUsageDocumentBytesMax = size_t{8} << 20;
constexpr size_t kModelRequestBytesMax = size_t{32} << 20;
constexpr int64_t kBytesPerTokenGuess = 4;

// Credentials in bodies, as OpenShell: what is rewritten, and what is read for a signature of AWS.
constexpr size_t kCredentialBodyBytesMax = size_t{256} << 10;
constexpr size_t kSignedBodyBytesMax = size_t{10} << 20;
// Access tokens that the gateway fetches itself: one answer of a token service, how long all of it
// may take, and how long before its end a token is fetched anew (clocks differ, requests take
// time).
constexpr size_t kTokenAnswerBytesMax = size_t{64} << 10;
constexpr milliseconds kTokenTimeout = seconds(30);
constexpr seconds kTokenEarly{300};
constexpr seconds kTokenLifetime{3600};  // What is asked for; Google grants no more.
// A failure is given to every request for so long before it is tried again; who waits for a token
// that another request fetches looks so often.
constexpr milliseconds kTokenRetry = seconds(5);
constexpr milliseconds kTokenPoll{20};

}  // namespace gateway
