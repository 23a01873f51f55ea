// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "policy/model/destination.h"

namespace gateway {

// Connects to that address, within kConnectTimeout. Judges nothing: the address must have been
// allowed. Fails with kIo as connect(2) does, with kTemporary at the time-out.
Task<Result<std::unique_ptr<Stream>>> Dial(EventLoop& loop, policy::Address address, uint16_t port);

}  // namespace gateway
