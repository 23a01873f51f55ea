// SPDX-License-Identifier: Apache-2.0
#include "report/wording.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "advise/suggest.h"
#include "base/sys.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "codec/text/shell_word.h"
#include "policy/model/host_pattern.h"
#include "record/shorthand.h"
#include "report/verdict.h"

namespace report {
namespace {

// Renders at most one decimal, and none if it is zero.
std::string Decimal(double number) {
  char text[40];
  const double rounded = std::round(number * 10) / 10;
  std::snprintf(text, sizeof text, rounded == std::floor(rounded) ? "%.0f" : "%.1f", rounded);
  return text;
}

std::string Quantity(double amount, const std::string& unit) {
  if (unit == "bytes") return HumanBytes(amount);
  if (unit == "s") return HumanDuration(amount);
  if (unit == "usd") return HumanCost(amount);
  const bool whole = amount == std::floor(amount) && std::abs(amount) < 1e15;
  const std::string number = whole ? HumanCount(static_cast<int64_t>(amount)) : Decimal(amount);
  return unit.empty() ? number : number + " " + unit;
}

// A line that goes into YAML quotes and is meant to be pasted: nothing but what endpoints are made
// of.
bool IsPlainLine(const std::string& line) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:*[]/";
  return !line.empty() && line.size() <= 512 && line.find_first_not_of(kPlain) == std::string::npos;
}

// Returns whether the line may be pasted from a fenced block: a line of ASCII.
bool IsPrintable(const std::string& line) {
  return !line.empty() &&
         std::all_of(line.begin(), line.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

std::string HumanCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3 + (count < 0 ? 1u : 0u);) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string HumanBytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  bytes = std::clamp(bytes, 0.0, 1e24);
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return (unit == 0 ? HumanCount(static_cast<int64_t>(bytes)) : Decimal(bytes)) + " " +
         kUnits[unit];
}

std::string HumanDuration(double seconds) {
  if (seconds < 0) return "0 s";
  if (seconds < 10) return Decimal(seconds) + " s";
  const int64_t whole = std::llround(std::min(seconds, 1e12));
  if (whole < 60) return std::to_string(whole) + " s";
  const bool hours = whole >= 3600;
  const int64_t large = hours ? whole / 3600 : whole / 60;
  const int64_t small = hours ? whole % 3600 / 60 : whole % 60;
  std::string out = HumanCount(large) + (hours ? " h" : " min");
  if (small > 0) out += " " + std::to_string(small) + (hours ? " min" : " s");
  return out;
}

std::string HumanCost(double dollars) {
  char text[40];
  std::snprintf(text, sizeof text, dollars > 0 && dollars < 0.1 ? "$%.4f" : "$%.2f", dollars);
  return text;
}

std::string Plural(int64_t count, std::string_view noun) {
  return HumanCount(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string HumanDate(int64_t ms_since_1970) {
  if (ms_since_1970 <= 0 || ms_since_1970 > 253402300799000) return {};  // Year 9999.
  const std::string time = record::RenderTime(ms_since_1970);
  return time.substr(0, 10) + " " + time.substr(11, 5) + " UTC";
}

std::string DescribeChanges(const ChangesRecord& changes) {
  std::string out = "no changes";
  if (changes.files > 0) {
    out = Plural(changes.files, "file") + " changed (+" + HumanCount(changes.added_lines) + " −" +
          HumanCount(changes.removed_lines) + ")";
  }
  if (changes.ignored_files > 0) out += ", " + Plural(changes.ignored_files, "ignored file");
  return out;
}

std::string DescribeLimit(const LimitRecord& limit) {
  if (limit.used && limit.limit) {
    // The unit once: "12 of 1,024 processes".
    const bool bare = limit.unit != "bytes" && limit.unit != "s" && limit.unit != "usd";
    return Quantity(*limit.used, bare ? "" : limit.unit) + " of " +
           Quantity(*limit.limit, limit.unit);
  }
  if (limit.limit) {
    // An unknown price is different from usage that is not measured.
    const std::string at_most = "at most " + Quantity(*limit.limit, limit.unit);
    return limit.unit == "usd" ? "unknown, " + at_most : at_most;
  }
  if (limit.used) return Quantity(*limit.used, limit.unit) + ", no limit";
  return "no limit";
}

std::string DescribeAttempt(const advise::Denial& denial) {
  // ICMP has no ports.
  const std::string host = policy::BracketedHost(denial.host);
  const std::string at = denial.port == 0 ? host : host + ":" + std::to_string(denial.port);
  if (denial.method.empty()) return "connect to " + at;
  std::string out =
      denial.method + " " + (denial.port == 443 || denial.port == 80 ? host : at) + denial.path;
  for (const policy::Operation& one : denial.operations) {
    out += (&one == &denial.operations.front() ? ": " : ", ") + policy::OperationText(one);
  }
  return out;
}

std::string DescribePolicy(const PolicyRecord& policy) {
  if (policy.source == "default" || policy.path.empty()) return "built-in default";
  std::string out = policy.path;
  if (!policy.ref.empty() && policy.ref != policy.commit) out += " at " + policy.ref;
  if (!policy.commit.empty()) out += " (" + policy.commit.substr(0, 7) + ")";
  return out;
}

std::string DescribeUsage(const UsageRecord& usage) {
  std::vector<std::string> parts;
  if (usage.turns > 0) parts.push_back(Plural(usage.turns, "turn"));
  if (usage.tool_calls > 0) parts.push_back(Plural(usage.tool_calls, "tool call"));
  const int64_t cached = usage.cache_read_tokens + usage.cache_write_tokens;
  if (usage.tokens() > 0) {
    std::string in = HumanCount(usage.input_tokens + cached) + " tokens in";
    if (usage.cache_read_tokens > 0) {
      in += " (" + HumanCount(usage.cache_read_tokens) + " from cache)";
    }
    parts.push_back(in);
    parts.push_back(HumanCount(usage.output_tokens) + " out");
    const int64_t difference = usage.agent_tokens.value_or(usage.tokens()) - usage.tokens();
    if (difference != 0) {
      parts.back() += " (the agent counts " + HumanCount(std::abs(difference)) +
                      (difference < 0 ? " less)" : " more)");
    }
  }
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  if (!out.empty() && !usage.complete) out += " (incomplete: the agent's output ended early)";
  return out;
}

std::string DescribeCost(const UsageRecord& usage) {
  if (usage.cost_source.empty()) return {};
  if (usage.cost_source == "agent") {
    return usage.cost_usd ? HumanCost(*usage.cost_usd) + " (reported by the agent)" : std::string();
  }
  std::string out;
  if (usage.cost_usd) {
    out = HumanCost(*usage.cost_usd) +
          (usage.cost_source == "gateway-estimate" ? " (estimated)" : "");
  } else {
    out = "cost unknown: no price for ";
    for (const std::string& model : usage.unpriced_models) {
      out += (&model == &usage.unpriced_models.front() ? "" : ", ") + model;
    }
    if (usage.priced_cost_usd > 0) out += ", " + HumanCost(usage.priced_cost_usd) + " for the rest";
  }
  // Prices are rounded on the way: a small difference says nothing.
  constexpr double kSame = 0.05;
  const bool differs = usage.agent_cost_usd &&
                       (!usage.cost_usd || std::abs(*usage.agent_cost_usd - *usage.cost_usd) >
                                               kSame * *usage.cost_usd);
  if (differs) out += " (the agent reports " + HumanCost(*usage.agent_cost_usd) + ")";
  return out;
}

std::string DescribeRefusal(const DeniedRequest& denied) {
  return denied.reason + (denied.deny_rule.empty() ? "" : " (" + denied.deny_rule + ")");
}

std::vector<std::string> AllowLines(const std::vector<DeniedRequest>& denials) {
  std::vector<std::string> lines;
  for (const DeniedRequest& denied : denials) {
    if (advise::IsRuleLine(denied.allow_line) || !IsPlainLine(denied.allow_line)) continue;
    if (std::find(lines.begin(), lines.end(), denied.allow_line) != lines.end()) continue;
    lines.push_back(denied.allow_line);
  }
  return lines;
}

std::vector<std::string> AllowRules(const std::vector<DeniedRequest>& denials, size_t rows_max) {
  std::vector<std::string> rules;
  for (const DeniedRequest& denied : denials) {
    const advise::Denial& denial = denied.denial;
    if (!advise::IsRuleLine(denied.allow_line) || !IsPrintable(denied.allow_line)) continue;
    // A path is a stranger's, and what follows a comment's line end would be pasted.
    std::string place =
        "# " + policy::BracketedHost(denial.host) + ":" + std::to_string(denial.port) + denial.path;
    std::string rule = codec::NeutralLine(place) + "\n" + denied.allow_line + "\n";
    if (std::find(rules.begin(), rules.end(), rule) != rules.end()) continue;
    if (rules.size() == rows_max) break;
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string ApplyCommand(const RunRecord& record, const std::string& directory) {
  const ChangesRecord& changes = record.changes;
  const bool local = record.event.forge.empty() && record.event.run_url.empty();
  const bool whole = Succeeded(record.outcome.kind) && changes.complete;
  if (!local || !whole || changes.files == 0 || changes.applied) return {};
  Result<std::string> current = sys::RealPath(".");
  std::string patch = directory + "/changes.patch";
  if (current.ok() && patch.starts_with(current.value() + "/")) {
    patch.erase(0, current.value().size() + 1);
  }
  // Its paths are relative to the run's directory, which may be below the repository's top.
  const std::string below =
      changes.prefix.empty() ? "" : "--directory=" + codec::ShellArgument(changes.prefix) + " ";
  return "git apply " + below + codec::ShellArgument(patch);
}

int64_t CountAttempts(const RunRecord& record) {
  constexpr int64_t kCountMax = 1 << 30;
  int64_t count = std::clamp<int64_t>(record.denials_dropped, 0, kCountMax);
  for (const DeniedRequest& denied : record.denials) {
    count += std::clamp<int64_t>(denied.count, 0, kCountMax);
  }
  return count;
}

bool IsPlainUrl(std::string_view url) {
  static constexpr std::string_view kEnding = "<>\"'&\\`";
  return (url.starts_with("https://") || url.starts_with("http://")) && url.size() < 2000 &&
         std::all_of(url.begin(), url.end(), [](char c) {
           return c > 0x20 && c < 0x7f && kEnding.find(c) == std::string::npos;
         });
}

double DurationSeconds(const RunRecord& record) {
  const int64_t ms = record.finished_at_ms - record.started_at_ms;
  return std::max<double>(0, static_cast<double>(ms)) / 1000;
}

namespace {

// What follows a repository's address.
struct PagePaths {
  std::string_view forge;  // EventRecord::forge.
  std::string_view commit;
  std::string_view proposal;
  std::string_view file;
  char sigil = '#';
};

constexpr PagePaths kPagePaths[] = {
    {"github", "/commit/", "/pull/", "/blob/"},
    {"gitea", "/commit/", "/pulls/", "/src/commit/"},
    {"gitlab", "/-/commit/", "/-/merge_requests/", "/-/blob/", '!'},
};

// Returns null for a forge whose pages are not known.
const PagePaths* PathsOf(std::string_view forge) {
  for (const PagePaths& paths : kPagePaths) {
    if (paths.forge == forge) return &paths;
  }
  return nullptr;
}

}  // namespace

std::string WebPages::Commit(std::string_view sha) const {
  const PagePaths* paths = PathsOf(forge);
  if (paths == nullptr || !IsPlainUrl(url) || !codec::IsObjectId(sha)) return {};
  return url + std::string(paths->commit) + std::string(sha);
}

std::string WebPages::Proposal(int64_t number) const {
  const PagePaths* paths = PathsOf(forge);
  if (paths == nullptr || !IsPlainUrl(url) || number <= 0) return {};
  return url + std::string(paths->proposal) + std::to_string(number);
}

std::string WebPages::File(std::string_view sha, std::string_view path, int line) const {
  const PagePaths* paths = PathsOf(forge);
  if (paths == nullptr || !IsPlainUrl(url) || !codec::IsObjectId(sha) || path.empty()) return {};
  const std::string page = url + std::string(paths->file) + std::string(sha) + "/" +
                           codec::PercentEncodePath(path) +
                           (line > 0 ? "#L" + std::to_string(line) : "");
  return IsPlainUrl(page) ? page : "";
}

std::string WebPages::Reference(int64_t number) const {
  const PagePaths* paths = PathsOf(forge);
  return (paths == nullptr ? '#' : paths->sigil) + std::to_string(number);
}

WebPages PagesOf(const EventRecord& event) {
  const size_t at = event.repository.empty() ? std::string::npos
                                             : event.run_url.find("/" + event.repository + "/");
  if (at == std::string::npos) return {"", event.forge};
  return {event.run_url.substr(0, at) + "/" + event.repository, event.forge};
}

}  // namespace report
