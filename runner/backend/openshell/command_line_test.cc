// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/command_line.h"

#include <catch2/catch.hpp>

#include "backend/openshell/sandbox.h"

namespace openshell {
namespace {

TEST_CASE("only the releases that were tested with are accepted") {
  CHECK(ParseVersion("openshell 0.0.112-dev.7+g2f7fb6559\n").value() == "0.0.112");
  CHECK(ParseVersion("openshell 0.0.111").value() == "0.0.111");
  for (const char* text :
       {"openshell 0.0.110", "openshell 0.0.113", "openshell 0.1.112", "openshell 1.0.112",
        "openshell 0.0.112x", "openshell 0.0", "openshell ", "openshell -1.0.112", "0.0.112", ""}) {
    CAPTURE(text);
    Result<std::string> version = ParseVersion(text);
    REQUIRE(!version.ok());
    CHECK(version.error().code == Code::kUnsupported);
    CHECK(!version.error().hint.empty());
  }
}

TEST_CASE("an error loses its frame and keeps its kind") {
  Error lost =
      ErrorOf("openshell sandbox get",
              "Error:   \xC3\x97 transport error\n  \xE2\x94\x9C\xE2\x94\x80\xE2\x96\xB6 tcp "
              "connect error\n");
  CHECK(lost.code == Code::kTemporary);
  CHECK(lost.what == "openshell sandbox get: transport error tcp connect error");
  CHECK(
      ErrorOf("x", "Error:   \xC3\x97 code: 'Some requested entity was not found', message: \"a\"")
          .code == Code::kNotFound);
  CHECK(ErrorOf("x", "Error:   \xC3\x97 failed to parse sandbox policy YAML").code ==
        Code::kInvalid);
  CHECK(ErrorOf("x", "").code == Code::kIo);
}

TEST_CASE("proposals are listed as OpenShell shows them") {
  std::vector<Proposal> all = ParseProposals(
      "Network Rules:  (version 1, 2 chunks)\n\n  Chunk: e80f1b32\n  Status: pending\n  Rule: r\n"
      "  Endpoints: other.example.com:80 [L4]\n  Binaries: /usr/bin/curl\n\n  Chunk: ae5d572b\n"
      "  Status: approved\n");
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == "e80f1b32");
  CHECK(all[0].endpoints == "other.example.com:80 [L4]");
  CHECK(all[0].binaries == "/usr/bin/curl");
  CHECK(all[1].status == "approved");
  CHECK(ParseProposals("Status: x\nEndpoints: y\n").empty());
}

}  // namespace
}  // namespace openshell
