// SPDX-License-Identifier: Apache-2.0
// agentic-ci's own sandbox as a place where agents run: its gateway, and namespaces or Landlock.
#pragma once

#include "run/request.h"

namespace run {

// Returns the row of `--backend native`.
Backend NativeBackend();

}  // namespace run
