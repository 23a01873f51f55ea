// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr size_t kDeepBytes = 400 * 1024;

// Returns how much of the stack is in memory, in KiB.
long StackKilobytes() {
  std::ifstream maps("/proc/self/smaps");
  bool stack = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[stack]")) stack = true;
    if (stack && line.starts_with("Rss:")) return std::stol(line.substr(4));
  }
  return -1;
}

[[gnu::noinline]] void CallDeeply() {
  volatile char used[kDeepBytes];
  for (size_t i = 0; i < sizeof used; i += 1024) used[i] = 1;
}

}  // namespace

TEST_CASE("the stack of deeper calls is given back, and can be used again", "[memory]") {
  long before = StackKilobytes();
  REQUIRE(before > 0);
  CallDeeply();
  REQUIRE(StackKilobytes() >= 400);
  sys::ReleaseUnusedMemory();
  CHECK(StackKilobytes() < 200);
  CallDeeply();
  CHECK(StackKilobytes() >= 400);
}

// In place of memset in libcgroup, cmake/static/cgroup_memset.c; not in every build.
extern "C" [[gnu::weak]] void* cgroup_memset(void* memory, int value, size_t size);

TEST_CASE("libcgroup's memset clears memory, and keeps none for what is large", "[memory]") {
  if (cgroup_memset == nullptr) return;
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t size = 40 * page;
  void* raw = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(raw != MAP_FAILED);
  auto* pages = static_cast<char*>(raw);
  auto resident = [&] {
    std::vector<unsigned char> there(40);
    REQUIRE(::mincore(pages, size, there.data()) == 0);
    return std::count_if(there.begin(), there.end(), [](unsigned char each) { return each & 1; });
  };
  for (size_t before : {size_t{0}, size_t{1}, page - 1}) {
    for (size_t bytes : {size_t{0}, size_t{1}, page, 16 * page, 30 * page, 30 * page + 7}) {
      CAPTURE(before, bytes);
      std::memset(pages, 'x', size);
      CHECK(cgroup_memset(pages + before, 0, bytes) == pages + before);
      const auto zeros = std::count(pages, pages + size, 0);
      CHECK(static_cast<size_t>(zeros) == bytes);
      CHECK(std::all_of(pages + before, pages + before + bytes, [](char c) { return c == 0; }));
    }
  }
  std::memset(pages, 'x', size);
  cgroup_memset(pages + 1, 0, 30 * page);
  CHECK(resident() == 11);
  CHECK(cgroup_memset(pages, 'y', 30 * page) == pages);
  CHECK(std::count(pages, pages + size, 'y') == static_cast<std::ptrdiff_t>(30 * page));
  ::munmap(raw, size);
}
