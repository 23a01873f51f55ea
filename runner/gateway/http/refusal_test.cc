// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/refusal.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"
#include "codec/wire/http_head.h"

namespace gateway {
namespace {

struct Parts {
  codec::ResponseHead head;
  std::string body;
};

Parts Split(const std::string& response) {
  codec::HeadScan scan = codec::ScanHead(response);
  REQUIRE(scan.state == codec::HeadScan::kComplete);
  return {codec::ParseResponseHead(response.substr(0, scan.size)).value(),
          response.substr(scan.size)};
}

TEST_CASE("A refusal is JSON of its exact length and closes the connection") {
  Parts parts =
      Split(RenderRefusal(NewRefusal(403, "ssrf_denied", "CONNECT h:1 blocked: internal address")));
  CHECK(parts.head.status == 403);
  CHECK(parts.head.reason == "Forbidden");
  CHECK(codec::FindField(parts.head.fields, "content-type")->value == "application/json");
  CHECK(codec::FindField(parts.head.fields, "content-length")->value ==
        std::to_string(parts.body.size()));
  CHECK(codec::FieldHasToken(parts.head.fields, "connection", "close"));
  CHECK(parts.body ==
        R"({"error":"ssrf_denied","detail":"CONNECT h:1 blocked: internal address"})");
}

TEST_CASE("A reason is given only where there is one") {
  Parts parts = Split(RenderRefusal(NewRefusal(403, "policy_denied", "d", "because")));
  CHECK(parts.body == R"({"error":"policy_denied","detail":"d","reason":"because"})");
}

TEST_CASE("A bare refusal has no body") {
  Parts parts = Split(RenderBareRefusal(431));
  CHECK(parts.head.status == 431);
  CHECK(parts.body.empty());
}

TEST_CASE("The denial of a request has every documented key") {
  Parts parts = Split(
      RenderRefusal(NewRequestRefusal({"github", "DELETE /x not permitted by policy", "DELETE",
                                       "/x", "api.example", 443, "/usr/bin/curl"})));
  CHECK(codec::FindField(parts.head.fields, "x-openshell-policy")->value == "github");
  codec::Json json = codec::ParseJson(parts.body).value();
  CHECK(json.StringAt("error") == "policy_denied");
  CHECK(json.StringAt("policy") == "github");
  CHECK(json.StringAt("rule") == "DELETE /x");
  CHECK(json.StringAt("detail") == "DELETE /x not permitted by policy");
  CHECK(json.StringAt("layer") == "l7");
  CHECK(json.StringAt("protocol") == "rest");
  CHECK(json.IntegerAt("port") == 443);
  CHECK(json.StringAt("binary") == "/usr/bin/curl");
  REQUIRE(json.Find("rule_missing") != nullptr);
  CHECK(json.Find("rule_missing")->StringAt("type") == "rest_allow");
  CHECK(json.Find("rule_missing")->StringAt("host") == "api.example");
  REQUIRE(json.Find("next_steps") != nullptr);
  CHECK(json.Find("next_steps")->array()->empty());
}

TEST_CASE("A policy's name cannot add a header") {
  std::string response =
      RenderRefusal(NewRequestRefusal({"a\r\nX-Evil: 1", "r", "GET", "/", "h", 443, "/b"}));
  CHECK(codec::FindField(Split(response).head.fields, "x-evil") == nullptr);
}

}  // namespace
}  // namespace gateway
