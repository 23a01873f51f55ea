// SPDX-License-Identifier: Apache-2.0
// How long the body of a request or a response may fall silent before it is given up.
#pragma once

#include <chrono>

#include "base/deadline.h"
#include "codec/wire/http_head.h"

namespace gateway {

// Returns whether a body of this type may: streams of events and of gRPC's messages are silent for
// as long as nothing happens.
bool MayFallSilent(const codec::HttpFields& fields);

// Returns the silence in an answer's body that ends it; zero if any is fine.
std::chrono::milliseconds IdleOf(const codec::ResponseHead& head,
                                 const codec::BodyFraming& framing);

// Returns when a silence that begins now has lasted that long; never for zero.
Deadline IdleDeadline(std::chrono::milliseconds idle);

}  // namespace gateway
