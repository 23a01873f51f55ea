// SPDX-License-Identifier: Apache-2.0
#include "eval/show/compare.h"

#include <catch2/catch.hpp>
#include <utility>

#include "base/code_of.h"

namespace eval {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;  // Injection task and outcome.
using Names = std::vector<std::string>;

codec::Json Document(const Cells& cells, const Names& missing = {}, const char* sha256 = "00") {
  codec::Json list = codec::Json::EmptyArray();
  for (const auto& [injection, outcome] : cells) {
    codec::Json cell;
    cell.Set("user_task", "do").Set("injection_task", injection).Set("outcome", outcome);
    list.Push(std::move(cell));
  }
  codec::Json document;
  document.Set("version", 1).Set("suite_sha256", sha256);
  return document.Set("cells", std::move(list)).Set("missing", codec::Json::FromStrings(missing));
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

TEST_CASE("A cell that is not there any more, or in part, is undecided") {
  const codec::Json before = Document({{"one", "resisted"}, {"two", "resisted"}});
  Comparison gone = Compare(before, Document({{"one", "resisted"}})).value();
  CHECK(gone.only_before == Names{"do,two"});
  CHECK(gone.undecided == Names{"do,two"});
  Comparison missing = Compare(before, Document({{"one", "resisted"}}, {"do,two,1"})).value();
  CHECK(missing.undecided == Names{"do,two"});
  CHECK(Compare(before, Document({{"one", "resisted"}, {"two", "resisted"}}, {"do,two,2"}))
            .value()
            .undecided == Names{"do,two"});
  CHECK(Compare(before, before).value().undecided.empty());
  // An answer that was not known before cannot be lost; a success can.
  CHECK(Compared({{"one", "error"}}, {}).undecided.empty());
  CHECK(Compared({{"one", "succeeded"}, {"one", "error"}}, {}).undecided == Names{"do,one"});
  CHECK(Compared({{"one", "resisted"}, {"one", "error"}}, {{"one", "error"}, {"one", "error"}})
            .undecided == Names{"do,one"});
  CHECK(Compared({{"one", "resisted"}, {"one", "error"}}, {{"one", "error"}, {"one", "resisted"}})
            .undecided.empty());
  // Some success does not stand for the trials without an answer.
  CHECK(Compared({{"one", "succeeded"}, {"one", "resisted"}},
                 {{"one", "succeeded"}, {"one", "error"}})
            .undecided == Names{"do,one"});
}

Cells Trials(size_t succeeded) {
  Cells cells(10, {"one", "resisted"});
  for (size_t i = 0; i < succeeded; ++i) cells[i].second = "succeeded";
  return cells;
}

TEST_CASE("An attack that succeeds more often is told, and judged where it is not chance") {
  Comparison far = Compared(Trials(1), Trials(10));
  CHECK(far.newly_succeeding == Names{"do,one"});
  REQUIRE(far.more_often.size() == 1);
  CHECK(far.more_often[0].starts_with("do,one: 1 of 10 ("));
  CHECK(Render(far).find("succeeding more often: do,one: 1 of 10") != std::string::npos);
  Comparison near = Compared(Trials(1), Trials(3));
  CHECK(near.newly_succeeding.empty());
  CHECK(near.more_often.size() == 1);
  CHECK(Compared(Trials(3), Trials(3)).more_often.empty());
  CHECK(Compared(Trials(10), Trials(1)).more_often.empty());
}

TEST_CASE("Another suite is told, and an outcome that is not known is refused") {
  const codec::Json before = Document({{"one", "resisted"}});
  const codec::Json other = Document({{"one", "resisted"}}, {}, "01");
  CHECK(Compare(before, other).value().another_suite);
  CHECK(Render(Compare(before, other).value()).find("the suites differ") != std::string::npos);
  CHECK_FALSE(Compare(before, before).value().another_suite);
  for (const char* word : {"Succeeded", "", "unknown"}) {
    CAPTURE(word);
    CHECK(CodeOf(Compare(before, Document({{"one", word}}))) == Code::kInvalid);
    CHECK(CodeOf(Compare(Document({{"one", word}}), before)) == Code::kInvalid);
  }
  CHECK(Compare(Document({{"", ""}}), before).ok());  // A control has no outcome.
}

}  // namespace
}  // namespace eval
