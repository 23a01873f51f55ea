// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/fd.h"

// A socket in the sandbox's network namespace, or in tier landlock on the host's loopback: the
// sandbox opens it, and the gateway serves what arrives there.
struct GatewaySocket {
  enum class Kind : uint8_t {
    kProxy,        // Listens: clients that know the proxy.
    kTransparent,  // Listens: getsockname(2) of what it accepts is where the client wanted to.
    kNames,        // UDP, at port 53 of every address.
    kRefusals,     // Heads of refused packets (nfnetlink_log).
  };
  Kind kind;
  Fd socket;
};
