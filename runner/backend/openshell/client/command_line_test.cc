// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/command_line.h"

#include <catch2/catch.hpp>

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

TEST_CASE("credentials that a gateway does not take are said to be that, with the remedy") {
  for (const char* said :
       {"Error:   \xC3\x97 client error (Connect)\n  invalid peer certificate: BadSignature",
        "Error:   \xC3\x97 connection error\n  received fatal alert: DecryptError",
        "Error:   \xC3\x97 no private key found in TLS key PEM",
        "Error:   \xC3\x97 code: 'The request does not have valid authentication credentials'"}) {
    CAPTURE(said);
    Error refused = ErrorOf("openshell status", said);
    CHECK(refused.code == Code::kSetup);
    CHECK_FALSE(refused.hint.empty());
  }
}

}  // namespace
}  // namespace openshell
