// SPDX-License-Identifier: Apache-2.0
#include "telemetry/otlp/message.h"

#include <catch2/catch.hpp>

#include "codec/text/hex.h"
#include "telemetry/otlp/messages.h"

namespace telemetry {
namespace {

TEST_CASE("A span is written in both encodings as OpenTelemetry's own libraries write it") {
  Message any;
  any.Number(otlp::kIntValue, static_cast<uint64_t>(int64_t{-1}));
  Message attribute;
  attribute.Text(otlp::kKey, "k").Child(otlp::kValue, std::move(any));
  Message span;
  span.Text(otlp::kTraceId, std::string(16, '\x01')).Text(otlp::kSpanName, "a\"\n");
  span.Number(otlp::kSpanKind, 3).Number(otlp::kSpanStart, 1'700'000'000'000'000'000);
  span.Child(otlp::kSpanAttributes, std::move(attribute)).Number(otlp::kSpanFlags, 0x301);
  CHECK(span.Json() == R"({"traceId":"01010101010101010101010101010101","name":"a\"\n","kind":3,)"
                       R"("startTimeUnixNano":"1700000000000000000",)"
                       R"("attributes":[{"key":"k","value":{"intValue":"-1"}}],"flags":769})");
  CHECK(codec::EncodeHex(span.Protobuf()) ==
        "0a1001010101010101010101010101010101"  // 1: sixteen bytes.
        "2a0361220a"                            // 5: "a\"\n".
        "3003"                                  // 6: a varint.
        "3900002a36fe9c9717"                    // 7: fixed64.
        "4a10"
        "0a016b"
        "120b"
        "18ffffffffffffffffff01"  // 9: k, and -1 as int64.
        "850101030000");          // 16: fixed32.
}

TEST_CASE("Repeated numbers are packed in protobuf, and a list in JSON") {
  Message point;
  point.Number(otlp::kBucketCounts, 1).Number(otlp::kBucketCounts, 2);
  point.Real(otlp::kExplicitBounds, 0.5);
  CHECK(point.Json() == R"({"bucketCounts":["1","2"],"explicitBounds":[0.5]})");
  CHECK(codec::EncodeHex(point.Protobuf()) ==
        "3210"
        "0100000000000000"
        "0200000000000000"
        "3a08"
        "000000000000e03f");
}

TEST_CASE("What a collector did not take is read from either encoding") {
  const std::string json = R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"full"}})";
  CHECK(ParseRejection(json, true).count == 3);
  CHECK(ParseRejection(json, true).reason == "full");
  CHECK(ParseRejection(R"({"partialSuccess":{"rejectedDataPoints":2}})", true).count == 2);
  const std::string wire(
      "\x0a\x08\x08\x03\x12\x04"
      "full",
      10);
  CHECK(ParseRejection(wire, false).count == 3);
  CHECK(ParseRejection(wire, false).reason == "full");
}

TEST_CASE("An answer that is empty, cut or something else rejects nothing") {
  const std::string wire(
      "\x0a\x08\x08\x03\x12\x04"
      "full",
      10);
  for (size_t size = 0; size < wire.size(); ++size) {
    CHECK(ParseRejection(wire.substr(0, size), false).reason.empty());
  }
  for (const char* body : {"", "{}", "<html>", "{\"partialSuccess\":null}", "[]"}) {
    CHECK(ParseRejection(body, true).count == 0);
    CHECK(ParseRejection(body, false).count == 0);
  }
  CHECK(ParseRejection(std::string(100, '\xff'), false).count == 0);
}

}  // namespace
}  // namespace telemetry
