// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <utility>

#include "sandbox/sandbox.h"

namespace sandbox {
namespace {

TEST_CASE("A process lives as long as its last owner, and is reaped") {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  REQUIRE(pid > 0);
  {
    OwnedPid last;
    {
      OwnedPid first(pid);
      OwnedPid second(std::move(first));
      CHECK_FALSE(first.valid());
      last = std::move(second);
    }
    CHECK(last.get() == pid);
    CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);  // It still runs.
  }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
}

}  // namespace
}  // namespace sandbox
