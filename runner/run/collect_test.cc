// SPDX-License-Identifier: Apache-2.0
#include "run/collect.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"

namespace run {
namespace {

using sandbox::Control;
using sandbox::ControlName;
using sandbox::ControlState;

TEST_CASE("A control that is required has to be enforced, whichever it is") {
  for (const sandbox::ControlRow& row : sandbox::kControls) {
    const std::vector<ControlName> required = {row.name};
    CHECK(CheckRequired(required, {{row.name, ControlState::kEnforced, ""}}).ok());
    for (ControlState state : {ControlState::kEmulated, ControlState::kUnavailable}) {
      const Status refused = CheckRequired(required, {{row.name, state, "the note"}});
      CHECK(CodeOf(refused) == Code::kUnsupported);
      CHECK(refused.error().what == ".agentic-ci/config.yml requires '" + std::string(row.text) +
                                        "' to be enforced; here, " + report::Render(state) +
                                        ": the note");
    }
    const Status absent = CheckRequired(required, {});
    CHECK(CodeOf(absent) == Code::kUnsupported);
  }
  CHECK(CheckRequired({}, {}).ok());
}

TEST_CASE("Each limit and each control has one row, whose names are its own") {
  for (const sandbox::LimitRow& row : sandbox::kLimits) {
    CHECK(&sandbox::RowOf(row.name) == &row);
    CHECK(sandbox::FindLimit(row.record, &sandbox::LimitRow::record) == &row);
    CHECK_FALSE(row.unit.empty());
    if (!row.option.empty()) {
      CHECK(sandbox::FindLimit(row.option, &sandbox::LimitRow::option) == &row);
    }
  }
  CHECK(sandbox::FindLimit("", &sandbox::LimitRow::option) == nullptr);
  for (const sandbox::ControlRow& row : sandbox::kControls) {
    CHECK(sandbox::TextOf(row.name) == row.text);
  }
}

}  // namespace
}  // namespace run
