// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace sys {
namespace {

// The calls made below, and what is kept for those that follow.
constexpr uintptr_t kStackKept = 16384;
// Less than the gap that the kernel keeps free below a stack (1 MiB): nothing else can lie there.
constexpr uintptr_t kStackGiven = 512 * 1024;

}  // namespace

void ReleaseUnusedMemory() {
  (void)::malloc_trim(0);
  auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t end = (frame - kStackKept) & ~(page - 1);
  // ENOMEM: the stack is shorter; what there is of it is given back all the same.
  (void)::madvise(reinterpret_cast<void*>(end - kStackGiven), kStackGiven, MADV_DONTNEED);
}

}  // namespace sys
