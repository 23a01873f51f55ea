// SPDX-License-Identifier: Apache-2.0
// Reads one HTTP/1 head from a stream, with bounds on its size and time, and not one byte more.
#pragma once

#include <string>

#include "base/deadline.h"
#include "gateway/async/limits.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"

namespace gateway {

// The text of one HTTP head, or why there is none.
struct HeadText {
  enum Kind {
    kHead,
    kEnd,        // The peer finished before the first byte.
    kMalformed,  // A line that does not end in CRLF, or the end in the middle.
    kTooLong,
    kFailed,  // An error or the deadline: see `why`.
  };
  Kind kind = kFailed;
  std::string text;  // kHead: up to and with the empty line; what follows stays in the stream.
  std::string why;
};

// The bounds on reading a head: its first byte must come by `first_byte`, the rest within
// kHeadTimeout of it.
struct HeadBounds {
  size_t bytes_max = 0;
  Deadline first_byte = Deadline::Never();
};

Task<HeadText> ReadHead(Stream& stream, HeadBounds bounds);

// Does the same from a plain stream, taking not one byte beyond the head from the socket: what
// follows may be the start of TLS. CONNECT heads are bounded by kConnectHeadBytesMax, others by
// kRequestHeadBytesMax.
Task<HeadText> ReadProxyHead(Stream& stream);

}  // namespace gateway
