// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_rules.h"

#include <catch2/catch.hpp>

namespace change {

TEST_CASE("Rules beneath the top mean there what they mean in their own directory") {
  const std::string rules = "# a comment\n\n*.o\r\n/only\na/b\nc/\n!keep.o\n!/d\n\\!x\n";
  CHECK(RulesAtTop(rules, "") == "*.o\n/only\na/b\nc/\n!keep.o\n!/d\n\\!x\n");
  CHECK(RulesAtTop(rules, "p/") ==
        "/p/**/*.o\n/p/only\n/p/a/b\n/p/**/c/\n!/p/**/keep.o\n!/p/d\n/p/**/\\!x\n");
  CHECK(RulesAtTop("*\n", "n[1]*/") == "/n\\[1\\]\\*/**/*\n");
  CHECK(RulesAtTop("/\n!\n \n", "p/").empty());
}

}  // namespace change
