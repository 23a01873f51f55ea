// SPDX-License-Identifier: Apache-2.0
#include "report/stats/tally.h"

#include <catch2/catch.hpp>
#include <string>

namespace report::stats {
namespace {

const Table& Find(const Overview& overview, const std::string& key) {
  for (const Table& table : overview.tables) {
    if (table.key == key) return table;
  }
  FAIL("no table " << key);
  return overview.tables.front();
}

RunRecord Run(int64_t day) {
  RunRecord record;
  record.started_at_ms = 1764547200000 + day * 86400000;  // 2025-12-01.
  record.finished_at_ms = record.started_at_ms + 2500;
  record.outcome.kind = OutcomeKind::kSuccess;
  return record;
}

TEST_CASE("Figures are shown in units of people, and what is not known as such") {
  Overview overview;
  overview.tables = {{"t",
                      "Table",
                      {{"name", "name"},
                       {"n", "n", Unit::kCount},
                       {"ms", "time", Unit::kMilliseconds},
                       {"usd", "cost", Unit::kUsd},
                       {"share", "share", Unit::kShare}},
                      {{{"é\n|", {}}, {{}, 12345}, {{}, 250}, {{}, 0.25}, {{}, 0.5}},
                       {{"b", {}}, {}, {{}, 61000}, {{}, 3}, {}}},
                      2}};
  CHECK(RenderText(overview) ==
        "0 runs\n\nTable\n"
        "  name       n       time   cost   share\n"
        "  é |   12,345     250 ms  $0.25  50.0 %\n"
        "  b          –  1 min 1 s  $3.00       –\n"
        "  and 2 more\n");
  const std::string markdown = RenderMarkdown(overview);
  CHECK(markdown.find("| name | n | time | cost | share |\n| --- | ---: |") != std::string::npos);
  CHECK(markdown.find("| `b` | – | 1 min 1 s | $3.00 | – |\n") != std::string::npos);
  CHECK(RenderJson(overview).find("\"n\": null") != std::string::npos);
  CHECK(RenderPage(overview).find("<td class=\"n\">1 min 1 s</td>") != std::string::npos);
}

TEST_CASE("However many names reports have, a bounded number of them is kept") {
  Tally tally;
  RunRecord record = Run(0);
  for (int i = 0; i < 15000; ++i) {
    DeniedRequest denied;
    denied.denial.host = "h" + std::to_string(i) + std::string(1000, 'x');
    denied.denial.port = 443;
    record.denials.push_back(denied);
  }
  tally.Add(record);
  const Overview overview = tally.Take();
  const Table& denials = Find(overview, "denials");
  CHECK(denials.rows.size() == kRowsMax);
  CHECK(denials.rows.size() + denials.more == 10001);
  CHECK(std::ranges::count(denials.rows, "(others)",
                           [](const auto& row) { return row.front().text; }) <= 1);
  CHECK(denials.rows.back()[2].number == 1);
  CHECK(denials.rows.back().front().text.size() <= 200);
}

TEST_CASE("The latest days are kept, in their order") {
  Tally tally;
  for (int64_t day = 119; day >= 0; --day) tally.Add(Run(day));
  const Overview overview = tally.Take();
  const Table& days = Find(overview, "days");
  CHECK(days.more == 20);
  CHECK(days.rows.front().front().text == "2025-12-21");
  CHECK(days.rows.back().front().text == "2026-03-30");
  CHECK(overview.first_ms < overview.last_ms);
}

TEST_CASE("Nothing was counted") {
  const Overview overview = Tally().Take();
  CHECK(RenderText(overview) == "0 runs\n");
  CHECK(RenderMarkdown(overview) == "**0 runs**\n");
}

}  // namespace
}  // namespace report::stats
