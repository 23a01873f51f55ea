// SPDX-License-Identifier: Apache-2.0
#include "report/model_use.h"

#include <catch2/catch.hpp>

#include "report/test_events.h"

namespace report {
namespace {

ModelUse UseOf(std::string_view jsonl) { return FromEvents(ReadModelUse, jsonl); }

std::string Inference(const std::string& counts) {
  return R"({"class_uid":6003,"ai_model":{"name":"m-1"},"unmapped":{)" + counts + "}}\n";
}

}  // namespace

TEST_CASE("What models were asked is summed over the events") {
  ModelUse use = UseOf(
      R"({"class_uid":4001,"action_id":1})"
      "\n" +
      Inference(R"("input_tokens":10,"output_tokens":5,"cost_micro_usd":250000)") +
      Inference(R"("input_tokens":1,"cache_read_tokens":7,"cost_micro_usd":500000,"estimated":1)"));
  CHECK(use.requests == 2);
  CHECK(use.model == "m-1");
  CHECK(use.input_tokens == 11);
  CHECK(use.output_tokens == 5);
  CHECK(use.cache_read_tokens == 7);
  CHECK(use.cost_usd == 0.75);
  CHECK(use.estimated);
  CHECK(use.exhausted.empty());
}

TEST_CASE("A cost that is not known for every answer is not told") {
  ModelUse use = UseOf(Inference(R"("input_tokens":10,"cost_micro_usd":5)") +
                       Inference(R"("input_tokens":10)"));
  CHECK_FALSE(use.cost_usd.has_value());
  CHECK_FALSE(UseOf("").cost_usd.has_value());
}

TEST_CASE("Of a cost with an unpriced part, the part and the rest are told") {
  ModelUse use = UseOf(Inference(R"("input_tokens":10,"cost_micro_usd":250000)") +
                       Inference(R"("cache_read_tokens":10)") + Inference(R"("input_tokens":10)"));
  CHECK_FALSE(use.cost_usd.has_value());
  CHECK(use.priced_cost_usd == 0.25);
  CHECK(use.unpriced_models == std::vector<std::string>{"m-1"});
}

TEST_CASE(
    "A credential that was refused each time is told with its host, and not when one passed") {
  const std::string refused =
      R"({"class_uid":6003,"api":{"service":{"name":"https://api.example.com"}},)"
      R"("unmapped":{"http_status":401}})"
      "\n";
  CHECK(UseOf(refused + refused).refused_by == "api.example.com");
  CHECK(UseOf(Inference(R"("http_status":200)") + refused).refused_by.empty());
  CHECK(UseOf(refused + Inference(R"("http_status":500)")).refused_by.empty());
}

TEST_CASE("A budget that refused is named, and its warnings are kept") {
  ModelUse use = UseOf(
      R"({"class_uid":2004,"status":"Success","finding_info":{"uid":"budget.cost","title":"80 %"}})"
      "\n"
      R"({"class_uid":2004,"status":"Failure","finding_info":{"uid":"budget.cost","title":"gone"}})"
      "\n"
      R"({"class_uid":2004,"status":"Failure","finding_info":{"uid":"other","title":"x"}})"
      "\n");
  CHECK(use.exhausted == "cost");
  CHECK(use.warnings == std::vector<std::string>{"80 %"});
}

}  // namespace report
