// SPDX-License-Identifier: Apache-2.0
#include "post/since.h"

#include <catch2/catch.hpp>

namespace post {
namespace {

report::Finding Found(const char* rule, const char* message, const char* line_hash = "") {
  report::Finding finding;
  finding.source = report::FindingSource::kAgent;
  finding.rule = rule;
  finding.path = "src/a.c";
  finding.message = message;
  finding.line_hash = line_hash;
  return finding;
}

forge::CommentStamp Stamp(int64_t started_ms, char sha, std::vector<report::Finding> findings,
                          report::OutcomeKind kind = report::OutcomeKind::kSuccess) {
  report::RunRecord record;
  record.outcome.kind = kind;
  record.findings = std::move(findings);
  return {started_ms, std::string(40, sha), FindingWords(record)};
}

}  // namespace

TEST_CASE("A comment says what is fixed and new since the commit before") {
  const auto before = Stamp(1, 'a', {Found("x", "one"), Found("x", "one"), Found("y", "two")});
  CHECK(DescribeSince(before, "", Stamp(2, 'b', {Found("x", "one"), Found("z", "three")})) ==
        "2 fixed, 1 new since `aaaaaaa`");
  CHECK(DescribeSince(before, "", Stamp(2, 'b', {})) == "3 fixed, 0 new since `aaaaaaa`");
  // Other words for the same lines are the same finding, and the same words elsewhere are not.
  CHECK(DescribeSince(Stamp(1, 'a', {Found("x", "one", "0123:1")}), "",
                      Stamp(2, 'b', {Found("x", "reworded", "0123:1")})) ==
        "0 fixed, 0 new since `aaaaaaa`");
}

TEST_CASE("A comment says nothing of a comparison that there is not") {
  const auto some = Stamp(1, 'a', {Found("x", "one")});
  CHECK(DescribeSince(some, "", Stamp(2, 'a', {})).empty());
  CHECK(DescribeSince(Stamp(1, 'a', {}), "", Stamp(2, 'b', {})).empty());
  CHECK(DescribeSince({1, std::string(40, 'a'), {}}, "", some).empty());
  CHECK(DescribeSince(some, "", Stamp(2, 'b', {}, report::OutcomeKind::kAgentFailed)).empty());
  CHECK(DescribeSince({1, "", some.findings}, "", Stamp(2, 'b', {})).empty());
  // A gate's findings are about the patch, which each run has anew.
  report::Finding gate = Found("secrets", "a token");
  gate.source = report::FindingSource::kGate;
  CHECK(DescribeSince(some, "", Stamp(2, 'b', {gate})) == "1 fixed, 0 new since `aaaaaaa`");
}

TEST_CASE("A report that is posted again keeps what its comment said of an earlier one") {
  const auto now = Stamp(2, 'b', {});
  const std::string head = "> note\n\n### Done\n\n42 s\n\n";
  const std::string since = "3 fixed, 0 new since `aaaaaaa`";
  CHECK(DescribeSince(now, head + since + "\n\nmore", now) == since);
  // What the agent says further down is not this program's.
  CHECK(DescribeSince(now, head + "**Words**\n\n" + since + "\n", now).empty());
  CHECK(DescribeSince(now, "### Done\n", now).empty());
}

}  // namespace post
