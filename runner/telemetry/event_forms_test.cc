// SPDX-License-Identifier: Apache-2.0
#include "telemetry/event_forms.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"

namespace telemetry {
namespace {

using Kind = EventTarget::Kind;

constexpr char kLine[] =
    R"({"class_uid":4002,"class_name":"HTTP Activity","time":1764500000123,"severity_id":3,)"
    R"("unmapped":{"host":"a"}})";

TEST_CASE("A message of syslog has its length, header and the record") {
  const std::string header = "<132>1 2025-11-30T10:53:20.123Z ci-1 agentic-ci - HTTP-Activity - ";
  const std::string message = header + kLine;
  CHECK(RenderSyslog(kLine, "ci-1") == std::to_string(message.size()) + " " + message);
  CHECK(RenderSyslog(kLine, "a b\n")->find("Z ab agentic-ci") != std::string::npos);
  CHECK(RenderSyslog(kLine, "")->find("Z - agentic-ci") != std::string::npos);
}

TEST_CASE("A record too long for syslog loses what is not OCSF's, or is not sent") {
  const std::string filler(kSyslogBytesMax, 'x');
  const std::string facts = R"({"time":1,"message":"m","unmapped":{"path":")" + filler + "\"}}";
  const std::optional<std::string> shorter = RenderSyslog(facts, "h");
  REQUIRE(shorter);
  CHECK(shorter->ends_with(R"( - {"time":1,"message":"m"})"));
  CHECK_FALSE(RenderSyslog("{\"message\":\"" + filler + "\"}", "h"));
}

TEST_CASE("Each kind of collector gets the record in its own form") {
  const std::string line = kLine;
  CHECK(RenderBatchPart(Kind::kLines, line, "") == line + "\n");
  CHECK(RenderBatchPart(Kind::kFile, line, "") == line + "\n");
  CHECK(RenderBatchPart(Kind::kSplunk, line, "https://ci/1") ==
        R"({"time":1764500000.123,"sourcetype":"ocsf","source":"https://ci/1","event":)" + line +
            "}\n");
  const std::string bulk = RenderBatchPart(Kind::kBulk, line, "").value();
  CHECK(bulk.starts_with("{\"create\":{}}\n{\"class_uid\":4002,"));
  CHECK(bulk.ends_with(",\"@timestamp\":\"2025-11-30T10:53:20.123Z\"}\n"));
}

TEST_CASE("A line that is no record is in no form") {
  for (const char* line : {"", "{", "[]", "null", "{\"a\":1}\r", "{\"a\":1}{\"b\":2}"}) {
    INFO(line);
    CHECK_FALSE(RenderSyslog(line, "h"));
    CHECK_FALSE(RenderBatchPart(Kind::kLines, line, ""));
  }
}

TEST_CASE("An answer of the Bulk API says which items failed") {
  CHECK(ParseBulkAnswer(R"({"errors":false,"items":[]})").count == 0);
  const BulkFailure failure = ParseBulkAnswer(
      R"({"errors":true,"items":[{"create":{"status":201}},)"
      R"({"create":{"status":400,"error":{"type":"mapping","reason":"no field"}}}]})");
  CHECK(failure.count == 1);
  CHECK(failure.reason == "mapping: no field");
  CHECK(ParseBulkAnswer(R"({"errors":true})").count == 1);
  CHECK(ParseBulkAnswer("").count == 0);
}

}  // namespace
}  // namespace telemetry
