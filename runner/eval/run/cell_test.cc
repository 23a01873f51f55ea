// SPDX-License-Identifier: Apache-2.0
#include "eval/run/cell.h"

#include <catch2/catch.hpp>

namespace eval {
namespace {

Suite SuiteOf(size_t users, size_t injections) {
  Suite suite;
  suite.file = "suite.yaml";
  for (size_t i = 0; i < users; ++i) {
    suite.user_tasks.emplace_back().id = "u" + std::to_string(i);
  }
  for (size_t i = 0; i < injections; ++i) {
    suite.injection_tasks.emplace_back().id = "i" + std::to_string(i);
  }
  return suite;
}

TEST_CASE("a suite with too many cells is refused before any is made") {
  const Suite suite = SuiteOf(1000, 999);
  Result<std::vector<Cell>> cells = PlanCells(suite, {});
  REQUIRE_FALSE(cells.ok());
  CHECK(cells.error().code == Code::kInvalid);
  CHECK(cells.error().what == "suite.yaml: 1000000 cells, and at most 100000 are run together");
  Selection trials;
  trials.users = {"u0"};
  trials.trials = 100;
  CHECK(PlanCells(suite, trials).value().size() == kCellsMax);
}

TEST_CASE("a task that is named twice is planned once") {
  const Suite suite = SuiteOf(2, 1);
  Selection twice;
  twice.users = {"u1", "u1"};
  twice.injections = {"i0", "i0"};
  std::vector<Cell> cells = PlanCells(suite, twice).value();
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].Name() == "u1,,1");
  CHECK(cells[1].Name() == "u1,i0,1");
}

}  // namespace
}  // namespace eval
