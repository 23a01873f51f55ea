// SPDX-License-Identifier: Apache-2.0
// That the schema accepts what ParsePolicy accepts is tests/policy/schema_test.py.
#include "policy/model/json_schema.h"

#include <catch2/catch.hpp>
#include <string>

#include "codec/data/json.h"
#include "policy/model/schema.h"

namespace policy {
namespace {

TEST_CASE("RenderPolicySchema has every key of the table, and refuses others") {
  codec::Json schema = codec::ParseJson(RenderPolicySchema()).value();
  const codec::Json* definitions = schema.Find("$defs");
  REQUIRE(definitions != nullptr);
  for (const KeySpec& key : PolicyKeys()) {
    const codec::Json* section = definitions->Find(SectionId(key.section));
    REQUIRE(section != nullptr);
    CHECK_FALSE(section->BooleanAt("additionalProperties", true));
    const codec::Json* property = section->Find("properties")->Find(key.name);
    REQUIRE(property != nullptr);
    CHECK(property->StringAt("description") == key.doc);
  }
}

TEST_CASE("RenderPolicySchema shows defaults as values") {
  codec::Json schema = codec::ParseJson(RenderPolicySchema()).value();
  const codec::Json* endpoint = schema.Find("$defs")->Find("endpoint")->Find("properties");
  CHECK(endpoint->Find("enforcement")->StringAt("default") == "enforce");
  CHECK(endpoint->Find("graphql_max_body_bytes")->IntegerAt("default") == 65536);
  CHECK_FALSE(endpoint->Find("allow_encoded_slash")->BooleanAt("default", true));
  CHECK(endpoint->Find("host")->Find("default") == nullptr);
}

}  // namespace
}  // namespace policy
