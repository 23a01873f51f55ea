// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace sys {

// Gives back to the kernel what beginning took and waiting does not need: freed heap, and the part
// of the stack that earlier, deeper calls used. For a process that will wait long, from its first
// thread.
void ReleaseUnusedMemory();

// Gives back to the kernel the whole pages of zeros at the end of `memory`, which go on reading as
// zeros. For private memory of no file, while no other thread writes to it.
void ReleaseZeros(std::span<char> memory);

}  // namespace sys
