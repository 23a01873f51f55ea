// SPDX-License-Identifier: Apache-2.0
#include "session/command_output.h"

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace session {
namespace {

constexpr char kHostile[] =
    "::error::x\n\033]0;title\007\033[2Jred \377##[add-mask]a\n##vso[task]\nlast";

// Returns what arrives of `written`, cut into pieces of that size.
std::string Through(std::optional<codec::LogCommands> shown, std::string_view written,
                    size_t piece) {
  auto [reads, writes] = sys::Pipe().value();
  CommandOutput output(writes.get(), shown);
  for (; !written.empty(); written.remove_prefix(std::min(piece, written.size()))) {
    REQUIRE(output.Take(written.substr(0, piece)).ok());
  }
  REQUIRE(output.Finish().ok());
  writes.Close();
  return sys::ReadAll(reads.get(), 65536).value();
}

TEST_CASE("a program gets the bytes, and a log or a person harmless lines") {
  for (size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
    CHECK(Through(std::nullopt, kHostile, piece) == kHostile);
    CHECK(Through(codec::LogCommands::kAll, kHostile, piece) ==
          ": :error::x\nred \uFFFD# #[add-mask]a\n# #vso[task]\nlast\n");
    CHECK(Through(codec::LogCommands::kNone, kHostile, piece) ==
          "::error::x\nred \uFFFD##[add-mask]a\n##vso[task]\nlast\n");
  }
}

TEST_CASE("nothing is shown of a command that writes nothing") {
  CHECK(Through(codec::LogCommands::kAll, "", 1).empty());
}

}  // namespace
}  // namespace session
