// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sys {

// Gives back to the kernel what beginning took and waiting does not need: freed heap, and the part
// of the stack that earlier, deeper calls used. For a process that will wait long, from its first
// thread.
void ReleaseUnusedMemory();

}  // namespace sys
