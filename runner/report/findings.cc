// SPDX-License-Identifier: Apache-2.0
#include "report/findings.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <tuple>

#include "base/version.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/utf8.h"
#include "record/shorthand.h"
#include "report/record_names.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report {
namespace {

using codec::Json;

constexpr size_t kResultsMax = 5000;
constexpr int kLinesInDigestMax = 20;

// The text of a rule; gates and agents may bring others.
struct RuleText {
  std::string_view id;
  std::string_view description;
};
constexpr std::array<RuleText, 4> kRules = {{
    {"egress-denied", "The agent attempted network access that the policy does not allow."},
    {"secrets", "The changes contain what looks like a credential."},
    {"protected-paths",
     "The changes touch a file that controls CI, review, hooks or agents, or a path outside the "
     "checkout."},
    {"size", "The changes exceed the size limit."},
}};

// FNV-1a: findings need a stable name, not a secret one.
uint64_t Hash(std::string_view text, uint64_t hash) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;  // So that "ab","c" differs from "a","bc".
}

// Relative, with '/' between, without "." and "..": what both formats demand.
bool IsRelative(std::string_view path) {
  if (path.empty() || path[0] == '/') return false;
  const std::string framed = "/" + std::string(path) + "/";
  return framed.find("/../") == std::string::npos && framed.find("/./") == std::string::npos &&
         framed.find("//") == std::string::npos;
}

// RFC 3986: a relative reference; ':' too, since before the first '/' it would name a scheme.
std::string PathAsUri(std::string_view path) {
  constexpr std::string_view kUnreserved =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string out;
  for (char c : path) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
    } else {
      char escape[4];
      std::snprintf(escape, sizeof escape, "%%%02X", static_cast<unsigned>(c) & 0xff);
      out += escape;
    }
  }
  return out;
}

Finding FromDenial(const DeniedRequest& denied) {
  std::string message = "refused: " + DescribeAttempt(denied.denial);
  if (!denied.denial.binary.empty()) message += " by " + denied.denial.binary;
  if (!denied.allow_line.empty())
    message += "; to allow it (this opens a way for data to leave): " + denied.allow_line;
  if (!denied.deny_rule.empty()) message += "; denied by the rule at " + denied.deny_rule;
  return {.source = FindingSource::kGate,
          .rule = "egress-denied",
          .severity = Severity::kWarning,
          .message = message,
          .path = {},
          .refuses = false};
}

Json RenderRule(const std::string& id) {
  RuleText text{id, {}};
  for (const RuleText& known : kRules) {
    if (known.id == id) text = known;
  }
  std::string description(text.description);
  if (description.empty()) description = "Reported by the rule " + id + " of agentic-ci.";
  std::string help(AdviceFor(id));
  if (help.empty()) help = "See the message and summary.md in the run's report.";
  Json rule;
  rule.Set("id", id)
      .Set("shortDescription", Json().Set("text", description))
      .Set("fullDescription", Json().Set("text", description))
      .Set("help", Json().Set("text", help));
  return rule;
}

Json RenderArtifact(const Finding& finding) {
  Json artifact;
  artifact.Set("uri", PathAsUri(finding.path)).Set("uriBaseId", "%SRCROOT%");
  return artifact;
}

Json RenderRegion(const Finding& finding) {
  Json region;
  region.Set("startLine", std::max(1, finding.line));
  if (finding.end_line > finding.line) region.Set("endLine", finding.end_line);
  return region;
}

Json RenderLocation(const Finding& finding) {
  Json physical;
  physical.Set("artifactLocation", RenderArtifact(finding)).Set("region", RenderRegion(finding));
  return Json().Push(Json().Set("physicalLocation", std::move(physical)));
}

// SARIF 2.1.0, 3.55.
Json RenderFixes(const Finding& finding) {
  Json replacement;
  replacement.Set("deletedRegion", RenderRegion(finding))
      .Set("insertedContent", Json().Set("text", *finding.suggestion));
  Json change;
  change.Set("artifactLocation", RenderArtifact(finding))
      .Set("replacements", Json().Push(std::move(replacement)));
  Json fix;
  fix.Set("description", Json().Set("text", "Suggested by the agent."))
      .Set("artifactChanges", Json().Push(std::move(change)));
  return Json().Push(std::move(fix));
}

// Counts how often the list has named the same thing.
class Occurrences {
 public:
  int Next(const Finding& finding) { return seen_[Fingerprint(finding, 0)]++; }

 private:
  std::map<std::string, int> seen_;
};

// The hash of each line as GitHub's code scanning computes it, over UTF-16: of the hundred units
// from the line's beginning, blanks and tabs aside, where every line ends in "\n" and the file in
// 0xffff.
std::vector<uint64_t> HashLines(std::string_view text) {
  constexpr size_t kWindow = 100;
  constexpr uint64_t kFactor = 37;
  std::vector<uint16_t> units;
  std::vector<size_t> starts;
  bool at_start = true;
  bool after_return = false;
  auto take = [&](uint32_t c) {
    const bool again = c == '\n' && after_return;  // Of "\r\n".
    after_return = c == '\r';
    if (c == ' ' || c == '\t' || again) return;
    if (c == '\r') c = '\n';
    if (at_start) starts.push_back(units.size());
    at_start = c == '\n';
    if (c > 0xffff) units.push_back(static_cast<uint16_t>(0xd7c0 + (c >> 10)));
    units.push_back(static_cast<uint16_t>(c > 0xffff ? 0xdc00 + (c & 0x3ff) : c));
  };
  while (!text.empty()) {
    const codec::Utf8Character next = codec::NextUtf8(text);
    take(next.value);
    text.remove_prefix(next.bytes);
  }
  take(0xffff);
  uint64_t leaving = 1;  // The factor of the unit that leaves the window.
  for (size_t i = 0; i < kWindow; ++i) leaving *= kFactor;
  std::vector<uint64_t> hashes;
  uint64_t hash = 0;
  for (size_t i = 0; hashes.size() < starts.size(); ++i) {
    hash = hash * kFactor + (i < units.size() ? units[i] : 0);
    if (i >= kWindow) hash -= leaving * units[i - kWindow];
    if (i + 1 == starts[hashes.size()] + kWindow) hashes.push_back(hash);
  }
  return hashes;
}

// Returns the digits in the form of a UUID.
std::string Dashed(const std::string& digits) {
  return digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-" + digits.substr(12, 4) + "-" +
         digits.substr(16, 4) + "-" + digits.substr(20);
}

Json RenderVulnerability(const Finding& finding, const std::string& fingerprint) {
  const char* severity = "Info";
  if (finding.severity == Severity::kWarning) severity = "Medium";
  if (finding.severity == Severity::kError) severity = "High";
  Json identifier;
  identifier.Set("type", "agentic_ci_rule")
      .Set("name", "agentic-ci: " + finding.rule)
      .Set("value", finding.rule);
  Json location;
  location.Set("file", codec::ValidUtf8(finding.path));
  if (finding.line > 0) location.Set("start_line", finding.line);
  if (finding.end_line > finding.line) location.Set("end_line", finding.end_line);
  Json item;
  item.Set("id", Dashed(fingerprint))
      .Set("name", finding.rule)
      .Set("description", codec::MarkdownText(finding.message))
      .Set("severity", severity)
      .Set("identifiers", Json().Push(std::move(identifier)))
      .Set("location", std::move(location));
  return item;
}

}  // namespace

std::string SarifText(std::string_view message) {
  std::string out;
  for (char c : message) {
    if (c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::vector<const Finding*> InOrder(const std::vector<Finding>& findings) {
  std::vector<const Finding*> order;
  order.reserve(findings.size());
  for (const Finding& finding : findings) order.push_back(&finding);
  auto rank = [](const Finding* finding) {
    return std::tuple(finding->source == FindingSource::kAgent, !finding->refuses,
                      static_cast<int>(finding->severity));
  };
  std::stable_sort(order.begin(), order.end(), [&](const Finding* one, const Finding* other) {
    return rank(one) < rank(other);
  });
  return order;
}

std::vector<Finding> ListFindings(const RunRecord& record) {
  std::vector<Finding> all;
  for (const Finding* finding : InOrder(record.findings)) all.push_back(*finding);
  for (const DeniedRequest& denied : record.denials) all.push_back(FromDenial(denied));
  if (all.size() > kResultsMax) all.resize(kResultsMax);
  for (Finding& finding : all) {
    finding.rule = codec::NeutralLine(finding.rule, 100);
    if (finding.rule.empty()) finding.rule = "unnamed";
    finding.message = codec::RedactTokens(codec::NeutralLine(finding.message, 1000));
    if (finding.message.empty()) finding.message = finding.rule;
    if (IsRelative(finding.path)) {
      finding.path = record.changes.prefix + finding.path;
    } else {
      finding.path.clear();
      finding.line = 0;
      finding.end_line = 0;
      finding.suggestion.reset();
      finding.line_hash.clear();
    }
  }
  return all;
}

std::string PolicyFileOf(const RunRecord& record) {
  const bool known = record.policy.source == "repository" && !record.policy.path.empty();
  return known ? record.policy.path : ".agentic-ci/openshell-policy.yml";
}

std::vector<Finding> AllFindings(const RunRecord& record) {
  std::vector<Finding> all = ListFindings(record);
  for (Finding& finding : all) {
    if (!finding.path.empty()) continue;
    finding.path = PolicyFileOf(record);
    finding.line = 1;
  }
  return all;
}

std::string Fingerprint(const Finding& finding, int occurrence) {
  std::string out;
  for (uint64_t seed : {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu}) {
    uint64_t hash = Hash(finding.rule, seed);
    hash = Hash(finding.path, hash);
    hash = Hash(finding.message, hash);
    hash = Hash(std::to_string(occurrence), hash);
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    out += text;
  }
  return out;
}

size_t LinesInDigest(int line, int end_line) {
  const int64_t lines = int64_t{end_line} - line + 1;
  return static_cast<size_t>(std::clamp<int64_t>(lines, 1, kLinesInDigestMax));
}

std::string LinesDigest(std::span<const std::string_view> lines) {
  codec::Sha256 digest;
  for (std::string_view line : lines) {
    digest.Update(line);
    digest.Update("\n");
  }
  return digest.Hex();
}

std::map<int, std::string> LineHashes(std::string_view text, const std::set<int>& lines) {
  if (lines.empty()) return {};
  const std::vector<uint64_t> hashes = HashLines(text);
  std::map<uint64_t, int> seen;  // Of the lines that are asked for.
  for (int line : lines) {
    if (line > 0 && static_cast<size_t>(line) <= hashes.size()) seen[hashes[line - 1u]] = 0;
  }
  std::map<int, std::string> named;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto asked = seen.find(hashes[i]);
    if (asked == seen.end()) continue;
    ++asked->second;
    const int line = static_cast<int>(i) + 1;
    if (!lines.contains(line)) continue;
    char text_of[32];
    std::snprintf(text_of, sizeof text_of, "%llx:%d", static_cast<unsigned long long>(hashes[i]),
                  asked->second);
    named[line] = text_of;
  }
  return named;
}

std::string RenderSarif(const RunRecord& record, const std::string& job_key) {
  Json rules = Json::EmptyArray();
  Json results = Json::EmptyArray();
  std::map<std::string, int> rule_index;
  Occurrences occurrences;
  for (const Finding& finding : AllFindings(record)) {
    const auto [rule, is_new] =
        rule_index.emplace(finding.rule, static_cast<int>(rule_index.size()));
    if (is_new) rules.Push(RenderRule(finding.rule));
    const std::string fingerprint = Fingerprint(finding, occurrences.Next(finding));
    Json result;
    result.Set("ruleId", finding.rule)
        .Set("ruleIndex", rule->second)
        .Set("level", NameOf(kSeverityNames, finding.severity))
        .Set("message", Json().Set("text", SarifText(finding.message)))
        .Set("locations", RenderLocation(finding));
    Json fingerprints;
    fingerprints.Set("agenticCi/v1", fingerprint);
    if (!finding.line_hash.empty()) fingerprints.Set("primaryLocationLineHash", finding.line_hash);
    result.Set("partialFingerprints", std::move(fingerprints));
    if (finding.suggestion) result.Set("fixes", RenderFixes(finding));
    results.Push(std::move(result));
  }
  Json driver;
  driver.Set("name", "agentic-ci")
      .Set("version", record.tool_version.empty() ? "unknown" : record.tool_version)
      .Set("informationUri", kHomepage)
      .Set("rules", std::move(rules));
  Json invocation;
  invocation.Set("executionSuccessful", Succeeded(record.outcome.kind))
      .Set("exitCode", record.outcome.exit_code);
  // The category is all up to the last slash.
  std::string category = "agentic-ci/";
  if (job_key.size() > 1) category += codec::NeutralLine(job_key, 200) + "/";
  Json run;
  run.Set("tool", Json().Set("driver", std::move(driver)))
      .Set("automationDetails", Json().Set("id", category))
      .Set("invocations", Json().Push(std::move(invocation)))
      .Set("columnKind", "utf16CodeUnits")
      .Set("results", std::move(results));
  Json sarif;
  sarif.Set("$schema", "https://json.schemastore.org/sarif-2.1.0.json")
      .Set("version", "2.1.0")
      .Set("runs", Json().Push(std::move(run)));
  return codec::RenderJson(sarif);
}

std::string RenderCodeQuality(const RunRecord& record) {
  Json list = Json::EmptyArray();
  Occurrences occurrences;
  for (const Finding& finding : AllFindings(record)) {
    const char* severity = "info";
    if (finding.severity == Severity::kWarning) severity = "minor";
    if (finding.severity == Severity::kError) severity = "major";
    if (finding.refuses) severity = "blocker";
    Json location;
    Json lines;
    lines.Set("begin", std::max(1, finding.line));
    if (finding.end_line > finding.line) lines.Set("end", finding.end_line);
    location.Set("path", codec::ValidUtf8(finding.path)).Set("lines", std::move(lines));
    Json item;
    item.Set("description", finding.message)
        .Set("check_name", finding.rule)
        .Set("fingerprint", Fingerprint(finding, occurrences.Next(finding)))
        .Set("severity", severity)
        .Set("location", std::move(location));
    list.Push(std::move(item));
  }
  return codec::RenderJson(list);
}

std::string RenderSast(const RunRecord& record) {
  // In UTC without a time zone, as GitLab's schema of security reports requires.
  const auto second = [](int64_t ms) {
    return record::RenderTime(ms).substr(0, std::string_view("2026-11-21T20:55:32").size());
  };
  Json vulnerabilities = Json::EmptyArray();
  Occurrences occurrences;
  for (const Finding& finding : ListFindings(record)) {
    if (finding.source != FindingSource::kAgent || finding.path.empty()) continue;
    vulnerabilities.Push(
        RenderVulnerability(finding, Fingerprint(finding, occurrences.Next(finding))));
  }
  Json tool;
  tool.Set("id", "agentic-ci")
      .Set("name", "agentic-ci")
      .Set("url", kHomepage)
      .Set("version", record.tool_version.empty() ? "unknown" : record.tool_version)
      .Set("vendor", Json().Set("name", "agentic-ci"));
  Json scan;
  scan.Set("analyzer", tool)
      .Set("scanner", std::move(tool))
      .Set("type", "sast")
      .Set("start_time", second(record.started_at_ms))
      .Set("end_time", second(record.finished_at_ms))
      .Set("status", Succeeded(record.outcome.kind) ? "success" : "failure");
  Json report;
  report.Set("version", "15.0.7")
      .Set("scan", std::move(scan))
      .Set("vulnerabilities", std::move(vulnerabilities));
  return codec::RenderJson(report);
}

}  // namespace report
