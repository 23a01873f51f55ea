// SPDX-License-Identifier: Apache-2.0
#include "base/unforked_bytes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

TEST_CASE("A forked process finds zeros where its parent keeps a secret") {
  Result<UnforkedBytes> kept = UnforkedBytes::Copy("a secret of the parent");
  REQUIRE(kept.ok());
  UnforkedBytes moved = std::move(kept).value();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string_view seen = moved.reveal();
    ::_exit(std::all_of(seen.begin(), seen.end(), [](char c) { return c == 0; }) ? 7 : 8);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(moved.reveal() == "a secret of the parent");
  CHECK(UnforkedBytes::Copy("").value().reveal().empty());
}
