// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace gateway {

// Gives up, for good, everything that the running gateway does not need: it can open no file, start
// no program, look at no process, and every system call that is not on a short list ends it. Call
// once all files are read; fails with kUnsupported where the kernel refuses.
Status ConfineSelf();

}  // namespace gateway
