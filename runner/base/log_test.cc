// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace logging {
namespace {

TEST_CASE("a line is one line, whatever its message and its facts have in them") {
  auto [reads, writes] = sys::Pipe().value();
  Fd kept(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  REQUIRE(::dup2(writes.get(), STDERR_FILENO) == STDERR_FILENO);
  Warn("plain \u00e9", {{"fact", "text"}});
  Warn("x\n::error::y", {{"name", "a\033[2J\u009b2J\u0085##[add-mask]\n::z"}});
  REQUIRE(::dup2(kept.get(), STDERR_FILENO) == STDERR_FILENO);
  writes.Close();
  CHECK(sys::ReadAll(reads.get(), 65536).value() ==
        "agentic-ci: warn: plain \u00e9 fact=text\n"
        "agentic-ci: warn: x?::error::y name=a?[2J?2J?# #[add-mask]?::z\n");
}

}  // namespace
}  // namespace logging
