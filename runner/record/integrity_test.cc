// SPDX-License-Identifier: Apache-2.0
#include "record/integrity.h"

#include <catch2/catch.hpp>
#include <string>

#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "record/line_facts.h"

namespace record {
namespace {

const std::string kRecord =
    R"({"type_uid":400203,"metadata":{"version":"1.9.0","profiles":["container"]},)"
    R"("unmapped":{"b":"\u000b\u00e4/","a":[true,null]}})";

TEST_CASE("a record's fingerprint is over its canonical form without the fingerprint") {
  IntegrityChain chain("c");
  const std::string linked = chain.Link(kRecord).value_or("");
  const std::string canonical =
      R"({"attestation_list":[{"chain_uid":"c"}],"metadata":{"profiles":["container",)"
      R"("record_integrity"],"uid":"c/0","version":"1.9.0"},"type_uid":400203,)"
      R"("unmapped":{"a":[true,null],"b":")"
      "\\u000b\u00e4/\"}}";
  CHECK(chain.head() == codec::Sha256Hex(canonical));
  CHECK(linked.find(R"("value":")" + chain.head()) != std::string::npos);
}

TEST_CASE("a record names the one before it") {
  IntegrityChain chain("c");
  REQUIRE(chain.Link(kRecord));
  const std::string first = chain.head();
  CHECK_FALSE(chain.Link("{"));  // It has a number, and no place.
  const std::string second = chain.Link(kRecord).value_or("");
  CHECK(second.find(R"("prev_event":{"uid":"c/0","type_uid":400203,"fingerprint":{)") !=
        std::string::npos);
  CHECK(second.find("\"value\":\"" + first) != std::string::npos);
  CHECK(second.find(R"("uid":"c/2")") != std::string::npos);
  CHECK(chain.head() != first);
}

TEST_CASE("what has no canonical form here, or a chain already, has no place") {
  IntegrityChain chain("c");
  for (const char* member :
       {"\"x\":1.5", "\"x\":9007199254740993", "\"\u00e4\":1", "\"attestation_list\":[]"}) {
    CAPTURE(member);
    CHECK_FALSE(chain.Link(R"({"metadata":{},)" + std::string(member) + "}"));
  }
  CHECK_FALSE(chain.Link("{}"));
  CHECK_FALSE(chain.Link("[]"));
  CHECK(chain.head().empty());
  CHECK(chain.Link(R"({"metadata":{},"x":9007199254740992})"));
}

TEST_CASE("a shortened record has no place in the chain") {
  IntegrityChain chain("c");
  const std::string linked = chain.Link(kRecord).value_or("");
  CHECK(WithoutOwnMembers(linked).value_or("").find(kAttestationList) == std::string::npos);
}

}  // namespace
}  // namespace record
