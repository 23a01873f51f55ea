// SPDX-License-Identifier: Apache-2.0
// How long a body may be silent before it counts as ended. Pure.
#pragma once

#include <chrono>

#include "base/deadline.h"
#include "codec/wire/http_head.h"

namespace gateway {

// Returns whether the body under these fields falls silent for as long as nothing happens: a stream
// of events, or of gRPC's messages.
bool MayFallSilent(const codec::HttpFields& fields);

// Returns the silence in the body of an answer that ends it; zero if silence is fine.
std::chrono::milliseconds IdleOf(const codec::ResponseHead& head,
                                 const codec::BodyFraming& framing);

// Returns the end of such a silence that begins now.
Deadline IdleDeadline(std::chrono::milliseconds idle);

}  // namespace gateway
