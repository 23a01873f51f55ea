// SPDX-License-Identifier: Apache-2.0
#include "spending/ledger.h"

#include <catch2/catch.hpp>

namespace spending {
namespace {

const std::string kOne(32, '1');
const std::string kTwo(32, '2');
const std::string kDay = "2026-12-01";

Spent Of(const std::string& id, double usd, int64_t number = 0, bool open = false) {
  return {id, kDay, number, usd, open};
}

TEST_CASE("a day is UTC's") {
  CHECK(DayOf(0) == "1970-01-01");
  CHECK(DayOf(1796083199) == "2026-11-30");
  CHECK(DayOf(1796083200) == "2026-12-01");
}

TEST_CASE("the budget that leaves least counts") {
  Ledger ledger;
  REQUIRE(Enter(&ledger, Of(kOne, 4, 7), kDay));
  REQUIRE(Enter(&ledger, Of(kTwo, 2, 8, true), kDay));
  const Limits both{10, 5};
  Left left = FindLeft(ledger, both, kDay, 7);
  CHECK(left.usd == Approx(1));
  CHECK_FALSE(left.of_day);
  CHECK(DescribeUsedUp(left) ==
        "the budget of the pull request is used up: $4.00 of $5.00 are spent");
  left = FindLeft(ledger, both, kDay, 9);
  CHECK(left.usd == Approx(4));
  CHECK(left.of_day);
  CHECK(DescribeUsedUp(left) ==
        "the budget of the day is used up: $4.00 of $10.00 are spent, and $2.00 are reserved for "
        "runs that go on");
  CHECK(FindLeft(ledger, {0, 5}, kDay, 8).usd == Approx(3));
  CHECK(FindLeft(ledger, {0, 5}, kDay, 0).usd == Approx(5));
  CHECK(FindLeft(ledger, {10, 0}, "2026-12-02", 7).usd == Approx(10));
}

TEST_CASE("what a run has spent never becomes less") {
  Ledger ledger;
  REQUIRE(Enter(&ledger, Of(kOne, 5, 7, true), kDay));
  CHECK(Enter(&ledger, Of(kOne, 2, 7), kDay));
  CHECK(FindLeft(ledger, {10, 0}, kDay, 7).usd == Approx(8));
  CHECK_FALSE(Enter(&ledger, Of(kOne, 1, 7), kDay));
  CHECK_FALSE(Enter(&ledger, Of(kOne, 2, 7), kDay));
  CHECK(Enter(&ledger, Of(kOne, 3, 8), kDay));
  CHECK(FindLeft(ledger, {10, 0}, kDay, 7).usd == Approx(7));
  CHECK(ledger.runs.front().number == 7);
  // A report could say anything.
  CHECK(Enter(&ledger, Of(kTwo, -5), kDay));
  CHECK(FindLeft(ledger, {10, 0}, kDay, 0).usd == Approx(7));
  CHECK(Enter(&ledger, Of(kTwo, 1e300), kDay));
  CHECK(ParseLedger(RenderLedger(ledger)).ok());
}

TEST_CASE("what is older than a day is summed up by pull request") {
  Ledger ledger;
  REQUIRE(Enter(&ledger, Of(kOne, 5, 7), kDay));
  REQUIRE(Enter(&ledger, {kTwo, "2026-12-02", 7, 1, false}, "2026-12-02"));
  CHECK(ledger.runs.size() == 2);
  // A run that began before midnight is settled behind it.
  CHECK(Enter(&ledger, Of(kOne, 6, 7), "2026-12-02"));
  CHECK(FindLeft(ledger, {10, 0}, "2026-12-02", 7).usd == Approx(9));
  REQUIRE(Enter(&ledger, {std::string(32, '3'), "2026-12-03", 0, 1, false}, "2026-12-03"));
  CHECK(ledger.runs.size() == 2);
  CHECK(ledger.proposals.at(7) == Approx(6));
  CHECK(FindLeft(ledger, {0, 10}, "2026-12-03", 7).usd == Approx(3));
  REQUIRE(Enter(&ledger, {std::string(32, '4'), "2027-01-01", 0, 1, false}, "2027-01-01"));
  CHECK(ledger.proposals.at(7) == Approx(7));
}

TEST_CASE("a ledger is read as it was written, and nothing else is one") {
  Ledger ledger;
  REQUIRE(Enter(&ledger, Of(kOne, 0.123456, 7, true), kDay));
  ledger.proposals[12] = 3.5;
  const std::string text = RenderLedger(ledger);
  const Result<Ledger> read = ParseLedger(text);
  REQUIRE(read.ok());
  CHECK(RenderLedger(read.value()) == text);
  CHECK(read.value().runs.front().open);
  CHECK(read.value().proposals.at(12) == 3.5);
  for (const char* other : {"", "null", "[]", "{}", R"({"version":2,"runs":[],"pull_requests":{}})",
                            R"({"version":1,"runs":{},"pull_requests":{}})",
                            R"({"version":1,"runs":[],"pull_requests":[]})",
                            R"({"version":1,"runs":[1],"pull_requests":{}})",
                            R"({"version":1,"runs":[],"pull_requests":{"07x":1}})",
                            R"({"version":1,"runs":[],"pull_requests":{"":1}})",
                            R"({"version":1,"runs":[],"pull_requests":{"7":-1}})",
                            R"({"version":1,"runs":[],"pull_requests":{"7":"1"}})"}) {
    CHECK_FALSE(ParseLedger(other).ok());
  }
  CHECK(ParseLedger(R"({"version":1,"runs":[],"pull_requests":{}})").ok());
}

TEST_CASE("an id is 32 lower-case hexadecimal digits") {
  CHECK(ValidId("0123456789abcdef0123456789abcdef"));
  for (const char* other :
       {"", "0123", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcdef0"}) {
    CHECK_FALSE(ValidId(other));
  }
}

}  // namespace
}  // namespace spending
