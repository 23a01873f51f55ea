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

TEST_CASE("zeros at the end are given back, and what stands before them is kept", "[memory]") {
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* raw = ::mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(raw != MAP_FAILED);
  auto* pages = static_cast<char*>(raw);
  std::memset(pages, 0, 8 * page);
  pages[3 * page] = 'x';
  pages[8 * page - 1] = 'y';  // Behind the last whole page of what is given back.
  auto resident = [&] {
    std::string found;
    std::vector<unsigned char> there(8);
    REQUIRE(::mincore(pages, 8 * page, there.data()) == 0);
    for (unsigned char each : there) found += (each & 1) != 0 ? '1' : '0';
    return found;
  };
  REQUIRE(resident() == "11111111");
  sys::ReleaseZeros({pages + 1, 8 * page - 2});
  CHECK(resident() == "11110001");
  CHECK(pages[3 * page] == 'x');
  CHECK(pages[8 * page - 1] == 'y');
  CHECK(std::all_of(pages + 4 * page, pages + 7 * page, [](char each) { return each == 0; }));
  pages[3 * page] = 0;
  sys::ReleaseZeros({pages + page, 1});  // Holds no whole page.
  CHECK(resident()[1] == '1');
  ::munmap(raw, 8 * page);
}
