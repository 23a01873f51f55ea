// SPDX-License-Identifier: Apache-2.0
#include "run/collect.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/code_of.h"
#include "change/test_tree.h"

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

TEST_CASE("The gates protect the file of --policy where it lies in the checkout") {
  const change::TestTree tree;
  tree.Write("rules/p.yml", "endpoints: []\n");
  tree.Link("link.yml", "rules/p.yml");
  Plan plan;
  plan.checkout.path = tree.root();
  auto policy = [&](const std::string& source, const std::string& path) {
    plan.policy.record.source = source;
    plan.policy.record.path = path;
    return GatesOf(plan, {}).policy;
  };
  CHECK(policy("file", tree.At("rules/../rules/p.yml")) ==
        std::vector<std::string>{"rules/p.yml", "rules/p.yml"});
  CHECK(policy("file", tree.At("link.yml")) == std::vector<std::string>{"link.yml", "rules/p.yml"});
  CHECK(policy("file", "/etc/p.yml").empty());
  CHECK(policy("file", tree.root() + "2/p.yml").empty());
  CHECK(policy("repository", tree.At("rules/p.yml")).empty());
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
