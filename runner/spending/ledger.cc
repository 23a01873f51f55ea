// SPDX-License-Identifier: Apache-2.0
#include "spending/ledger.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/ascii.h"
#include "codec/data/json.h"

namespace spending {
namespace {

using codec::Json;

constexpr int64_t kVersion = 1;
constexpr size_t kIdDigits = 32;
constexpr int64_t kNumberMax = 1'000'000'000'000;
constexpr double kUsdMax = 1e6;  // As codec::ParseDollars().
constexpr std::time_t kDay_s = 24 * 60 * 60;
// The oldest pull requests are forgotten beyond it, so that the ledger stays small.
constexpr size_t kProposalsMax = 10'000;

bool ValidUsd(const Json* usd) {
  const std::optional<double> value = usd == nullptr ? std::nullopt : usd->number();
  return value && *value >= 0 && *value <= kUsdMax;
}

// "2026-12-01": compared as text, later days are greater.
bool ValidDay(std::string_view day) {
  constexpr std::string_view kForm = "0000-00-00";
  return day.size() == kForm.size() &&
         std::equal(day.begin(), day.end(), kForm.begin(),
                    [](char c, char form) { return form == '0' ? ascii::IsDigit(c) : c == form; });
}

Result<Spent> ParseSpent(const Json& json) {
  Spent spent{json.StringAt("id"), json.StringAt("day"), json.IntegerAt("number"), 0,
              json.BooleanAt("open")};
  const Json* usd = json.Find("usd");
  if (!ValidId(spent.id) || !ValidDay(spent.day) || spent.number < 0 || !ValidUsd(usd)) {
    return Invalid("an entry of a run is malformed");
  }
  spent.usd = *usd->number();
  return spent;
}

// Dollars as a ledger has them: whole millionths.
double Rounded(double usd) { return std::round(std::clamp(usd, 0.0, kUsdMax) * 1e6) / 1e6; }

std::string Dollars(double usd) {
  char text[32];
  std::snprintf(text, sizeof text, "$%.2f", usd);
  return text;
}

// Returns the day before the one before that.
std::string OldestKept(const std::string& today) {
  std::tm date{};
  std::sscanf(today.c_str(), "%d-%d-%d", &date.tm_year, &date.tm_mon, &date.tm_mday);
  date.tm_year -= 1900;
  date.tm_mon -= 1;
  return DayOf(::timegm(&date) - kDay_s);
}

void SumUp(Ledger* ledger, const std::string& today) {
  const std::string oldest = OldestKept(today);
  std::erase_if(ledger->runs, [&](const Spent& spent) {
    if (spent.day >= oldest) return false;
    if (spent.number > 0) {
      double& sum = ledger->proposals[spent.number];
      sum = Rounded(sum + spent.usd);
    }
    return true;
  });
  while (ledger->proposals.size() > kProposalsMax) {
    ledger->proposals.erase(ledger->proposals.begin());
  }
}

}  // namespace

std::string DayOf(std::time_t now) {
  std::tm date{};
  ::gmtime_r(&now, &date);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &date);
  return text;
}

bool ValidId(std::string_view id) {
  return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
           return ascii::IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

Result<Ledger> ParseLedger(std::string_view text) {
  const Json json = TRY(codec::ParseJson(text, {.bytes_max = kLedgerBytesMax}));
  const Json* runs = json.Find("runs");
  const Json* proposals = json.Find("pull_requests");
  if (json.IntegerAt("version") != kVersion || runs == nullptr || runs->array() == nullptr ||
      proposals == nullptr || proposals->object() == nullptr) {
    return Invalid("it is not a ledger of version 1");
  }
  Ledger ledger;
  for (const Json& run : *runs->array()) ledger.runs.push_back(TRY(ParseSpent(run)));
  for (const auto& [name, usd] : *proposals->object()) {
    int64_t number = 0;
    for (char c : name)
      number = ascii::IsDigit(c) && number < kNumberMax ? number * 10 + (c - '0') : -1;
    if (number <= 0 || !ValidUsd(&usd)) return Invalid("an entry of a pull request is malformed");
    ledger.proposals[number] = *usd.number();
  }
  return ledger;
}

std::string RenderLedger(const Ledger& ledger) {
  Json runs = Json::EmptyArray();
  for (const Spent& spent : ledger.runs) {
    Json run;
    run.Set("id", spent.id).Set("day", spent.day).Set("number", spent.number).Set("usd", spent.usd);
    runs.Push(std::move(run.Set("open", spent.open)));
  }
  Json proposals = Json::EmptyObject();
  for (const auto& [number, usd] : ledger.proposals) proposals.Set(std::to_string(number), usd);
  Json json;
  json.Set("version", kVersion)
      .Set("runs", std::move(runs))
      .Set("pull_requests", std::move(proposals));
  return codec::RenderJsonLine(json) + "\n";
}

Left FindLeft(const Ledger& ledger, const Limits& limits, const std::string& day, int64_t number) {
  Left of_day{limits.per_day, limits.per_day, true, 0};
  Left of_proposal{limits.per_pull_request, limits.per_pull_request, false, 0};
  auto take = [](Left* left, const Spent& spent) {
    left->usd -= spent.usd;
    if (spent.open) left->open += spent.usd;
  };
  for (const Spent& spent : ledger.runs) {
    if (spent.day == day) take(&of_day, spent);
    if (number > 0 && spent.number == number) take(&of_proposal, spent);
  }
  const auto earlier = ledger.proposals.find(number);
  if (number > 0 && earlier != ledger.proposals.end()) of_proposal.usd -= earlier->second;
  if (limits.per_pull_request <= 0) return of_day;
  return limits.per_day <= 0 || of_proposal.usd < of_day.usd ? of_proposal : of_day;
}

std::string DescribeUsedUp(const Left& left) {
  const double spent = left.limit - left.usd - left.open;
  std::string what = "the budget of the ";
  what += left.of_day ? "day" : "pull request";
  what += " is used up: " + Dollars(spent) + " of " + Dollars(left.limit) + " are spent";
  if (left.open > 0) what += ", and " + Dollars(left.open) + " are reserved for runs that go on";
  return what;
}

bool Enter(Ledger* ledger, const Spent& spent, const std::string& today) {
  auto same = [&](const Spent& one) { return one.id == spent.id; };
  const auto found = std::find_if(ledger->runs.begin(), ledger->runs.end(), same);
  const double usd = Rounded(spent.usd);
  if (found == ledger->runs.end()) {
    ledger->runs.push_back(spent);
    ledger->runs.back().usd = usd;
  } else if (found->open) {
    found->usd = usd;
    found->open = spent.open;
  } else if (usd > found->usd) {
    found->usd = usd;
  } else {
    return false;
  }
  SumUp(ledger, today);
  return true;
}

}  // namespace spending
