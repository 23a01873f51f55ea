// SPDX-License-Identifier: Apache-2.0
// How long a body may be silent before it counts as ended. Pure.
#pragma once

#include <chrono>

#include "base/deadline.h"
#include "codec/wire/http_head.h"

namespace gateway {

// Returns whether a body with these fields may be silent for any time: a stream of events, or of
// gRPC's messages.
bool MayFallSilent(const codec::HttpFields& fields);

// Returns how long the body of an answer may be silent before it counts as ended; zero for any
// time.
std::chrono::milliseconds IdleOf(const codec::ResponseHead& head,
                                 const codec::BodyFraming& framing);

// Returns the deadline of a silence that begins now; never for zero.
Deadline IdleDeadline(std::chrono::milliseconds idle);

}  // namespace gateway
