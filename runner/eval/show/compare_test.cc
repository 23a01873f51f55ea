// SPDX-License-Identifier: Apache-2.0
#include "eval/show/compare.h"

#include <catch2/catch.hpp>
#include <utility>

namespace eval {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;  // Injection task and outcome.
using Names = std::vector<std::string>;

codec::Json Document(const Cells& cells) {
  codec::Json list = codec::Json::EmptyArray();
  for (const auto& [injection, outcome] : cells) {
    codec::Json cell;
    cell.Set("user_task", "do").Set("injection_task", injection).Set("outcome", outcome);
    list.Push(std::move(cell));
  }
  codec::Json document;
  return document.Set("version", 1).Set("cells", std::move(list));
}

Comparison Compared(const Cells& before, const Cells& now) {
  Result<Comparison> comparison = Compare(Document(before), Document(now));
  REQUIRE(comparison.ok());
  return std::move(comparison).value();
}

TEST_CASE("An attack that succeeds and was not there before is a new one") {
  Comparison both = Compared({{"old", "resisted"}}, {{"old", "resisted"}, {"new", "succeeded"}});
  CHECK(both.newly_succeeding == Names{"do,new"});
  CHECK(both.only_now == Names{"do,new"});
  CHECK(Compared({{"old", "succeeded"}}, {{"old", "succeeded"}}).newly_succeeding.empty());
}

TEST_CASE("What was known and is not any more is undecided, whatever it was") {
  for (const char* before : {"resisted", "succeeded", "not-applicable"}) {
    for (const char* now : {"inconclusive", "error"}) {
      CHECK(Compared({{"one", before}}, {{"one", now}}).undecided == Names{"do,one"});
    }
  }
  CHECK(Compared({{"one", "error"}}, {{"one", "error"}}).undecided.empty());
  CHECK(Compared({}, {{"one", "error"}}).undecided.empty());
  Comparison gone = Compared({{"one", "succeeded"}}, {{"one", "resisted"}});
  CHECK(gone.undecided.empty());
  CHECK(gone.no_longer == Names{"do,one"});
}

}  // namespace
}  // namespace eval
