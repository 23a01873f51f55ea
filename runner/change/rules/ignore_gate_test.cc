// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_gate.h"

#include <catch2/catch.hpp>
#include <string>

namespace change {

TEST_CASE("Rules of an ordinary project cost little", "[change][ignore_gate]") {
  std::string rules;
  for (int i = 0; i < 500; ++i)
    rules += "build-" + std::to_string(i) + "/*.o\n# a comment **/**/**/**\n";
  for (int i = 0; i < 30; ++i) rules += "**/node_modules/" + std::to_string(i) + "\n";
  CHECK(CostOfRules(rules) < 10000);
}

TEST_CASE("One line with three double stars costs more than all may", "[change][ignore_gate]") {
  CHECK(CostOfRules("a/**/b/**/c\n") < 1000);
  CHECK(CostOfRules("a/**/b/**/c/**/d\n") > 20000);
  CHECK(CostOfRules("a\n*a*a*a*a*a*a*a*a*a*a*a*a*b") > 20000);
}

TEST_CASE("Many cheap lines add up", "[change][ignore_gate]") {
  std::string rules;
  for (int i = 0; i < 30000; ++i) rules += "a\n";
  CHECK(CostOfRules(rules) > 20000);
  CHECK(CostOfRules("") == 0);
}

}  // namespace change
