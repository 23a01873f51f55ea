// SPDX-License-Identifier: Apache-2.0
#include "cli/github.h"

#include <catch2/catch.hpp>

namespace cli {
namespace {

TEST_CASE("RunOutputs has every output that action.yml promises") {
  report::RunRecord record;
  record.outcome.kind = report::OutcomeKind::kRefused;
  record.outcome.exit_code = 77;
  record.usage.cost_usd = 0.0425;
  record.usage.input_tokens = 1;
  record.usage.output_tokens = 10;
  record.usage.cache_read_tokens = 100;
  record.usage.cache_write_tokens = 1000;

  Outputs outputs = RunOutputs(record, "report");

  REQUIRE(outputs.size() == kActionOutputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(outputs[i].first == kActionOutputs[i].name);
  auto output = [&](std::string_view name) {
    for (const auto& [key, value] : outputs) {
      if (key == name) return value;
    }
    return std::string("no such output");
  };
  CHECK(output("conclusion") == "refused");
  CHECK(output("exit-code") == "77");
  CHECK(output("sarif-path") == "report/findings.sarif");
  CHECK(output("patch-path") == "");
  CHECK(output("cost-usd") == "0.042500");
  CHECK(output("tokens") == "1111");
  record.changes.files = 1;
  outputs = RunOutputs(record, "report");
  CHECK(output("patch-path") == "report/changes.patch");
}

}  // namespace
}  // namespace cli
