// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/fd.h"

// A socket from inside the sandbox's network namespace, which the sandbox makes and the gateway
// serves.
struct Door {
  enum class Kind : uint8_t {
    kProxy,        // Listens: clients that know the proxy.
    kTransparent,  // Listens: getsockname(2) of what it accepts is where the client wanted to.
    kNames,        // UDP, at port 53 of every address.
    kRefusals,     // Heads of refused packets (nfnetlink_log).
  };
  Kind kind;
  Fd socket;
};
