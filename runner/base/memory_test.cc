// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

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
