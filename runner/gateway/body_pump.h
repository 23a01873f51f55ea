// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/http_head.h"
#include "gateway/stream.h"
#include "gateway/task.h"

namespace gateway {

// How one body comes in and goes out.
struct BodyPlan {
  codec::BodyFraming framing;
  bool rechunk = false;  // kChunked only: chunks again; otherwise the bare bytes.
  // Silence that ends it: an Error, except in a kUntilClose body, where it is the end.
  // Zero: silence is fine (a stream of events).
  milliseconds idle{0};
};

struct BodyOutcome {
  enum Kind {
    kDone,
    kSourceFailed,  // Ended early or silent: what was sent on is incomplete.
    kMalformed,     // Not the body that its head promised: likewise.
    kSinkFailed,    // The reader went away; the source may still be sending.
  };
  Kind kind = kDone;
  std::string why;
};

// Moves one body as it arrives, never holding more than a buffer of it. `from` may hold the first
// bytes of it already, and keeps what lies behind it. Trailers are dropped.
Task<BodyOutcome> PumpBody(Stream& from, Stream& to, BodyPlan plan);

}  // namespace gateway
