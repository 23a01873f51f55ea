// SPDX-License-Identifier: Apache-2.0
#include "codec/text/git_name.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("Names are read as git writes them") {
  CHECK(UnquoteGitName("a b") == "a b");
  CHECK(UnquoteGitName("\"a\\303\\274\\t\\\"\"") == "a\303\274\t\"");
  for (const char* wrong :
       {"\"a", "\"a\" ", "\"\\", "\"\\x\"", "\"\\400\"", "\"\\07\"", "\"\\+07\""}) {
    CAPTURE(wrong);
    CHECK(UnquoteGitName(wrong) == std::nullopt);
  }
}

TEST_CASE("The head of a difference has a name where both are the same") {
  CHECK(NameOfDiff("a/x y b/x y") == "x y");
  CHECK(NameOfDiff("\"a/\\303\\274\" \"b/\\303\\274\"") == "\303\274");
  for (const char* wrong : {"", "a/x b/y", "a/x x b/x", "b/x a/x", "\"a/x\" \"b/y\"", "\"a/x\""}) {
    CAPTURE(wrong);
    CHECK(NameOfDiff(wrong) == std::nullopt);
  }
}

}  // namespace
}  // namespace codec
