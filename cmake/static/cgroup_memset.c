// SPDX-License-Identifier: Apache-2.0
/* libcgroup clears its table of mounts before it reads them: 0.8 MiB, of which it uses a hundredth. The kernel would supply
 * every page of it, in each run, and each process of a sandbox would keep them. Memory that is given back reads as zeros,
 * too. What libcgroup calls memset is this (cmake/dependencies.cmake); it clears memory of its own alone, never a file's. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *cgroup_memset(void *memory, int value, size_t size);

void *cgroup_memset(void *memory, int value, size_t size) {
  const size_t worth = 65536;
  char *const begin = memory;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const size_t before = (page - (uintptr_t)begin % page) % page;
  if (value != 0 || size < worth) return memset(memory, value, size);
  const size_t whole = (size - before) / page * page;
  if (madvise(begin + before, whole, MADV_DONTNEED) != 0) return memset(memory, 0, size);
  memset(begin, 0, before);
  memset(begin + before + whole, 0, size - before - whole);
  return memory;
}
