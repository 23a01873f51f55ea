// SPDX-License-Identifier: Apache-2.0
#include "report/agent_findings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "report/record_names.h"

namespace report {
namespace {

using codec::Json;

constexpr size_t kMistakesMax = 20;
constexpr size_t kMessageBytesMax = 4 << 10;
constexpr size_t kSuggestionBytesMax = 16 << 10;
constexpr size_t kRuleBytesMax = 100;
constexpr size_t kFindingPathBytesMax = 4096;
constexpr int64_t kLineMax = 10'000'000;
constexpr std::array<std::string_view, 7> kMembers = {"path", "line",    "end_line",  "severity",
                                                      "rule", "message", "suggestion"};

std::string Quoted(std::string_view text) { return "\"" + codec::NeutralLine(text, 60) + "\""; }

// Collects findings and mistakes; `where` names the entry at hand.
class Checker {
 public:
  AgentFindings Take() { return std::move(result_); }

  void Mistake(const std::string& where, const std::string& what) {
    if (result_.mistakes.size() < kMistakesMax) result_.mistakes.push_back(where + ": " + what);
    failed_ = true;
  }

  // Ends an entry: without a mistake since the last one, it counts.
  void Add(const std::string& where, Finding finding) {
    finding.source = FindingSource::kAgent;
    if (finding.message.empty()) Mistake(where, "no message");
    if (!finding.path.empty()) CheckPath(where, finding.path);
    if (finding.path.empty() && finding.line != 0) Mistake(where, "a line without a path");
    if (finding.line < 0 || finding.line > kLineMax) Mistake(where + ".line", "out of range");
    if (finding.end_line != 0 && finding.end_line < finding.line) {
      Mistake(where + ".end_line", "before the line");
    }
    if (finding.suggestion && finding.line == 0) Mistake(where, "a suggestion without a line");
    if (finding.suggestion && finding.suggestion->size() > kSuggestionBytesMax) {
      Mistake(where + ".suggestion",
              "longer than " + std::to_string(kSuggestionBytesMax) + " bytes");
    }
    if (!std::exchange(failed_, false) && result_.findings.size() < kAgentFindingsMax) {
      finding.message = codec::CutUtf8(finding.message, kMessageBytesMax);
      finding.rule = codec::CutUtf8(finding.rule, kRuleBytesMax);
      if (finding.rule.empty()) finding.rule = "agent";
      if (finding.end_line == 0) finding.end_line = finding.line;
      result_.findings.push_back(std::move(finding));
    }
  }

  void Skip() { failed_ = false; }

 private:
  void CheckPath(const std::string& where, const std::string& path) {
    std::string framed = "/" + path + "/";
    bool leads_out = path[0] == '/' || framed.find("/../") != std::string::npos ||
                     framed.find("/./") != std::string::npos ||
                     framed.find("//") != std::string::npos;
    if (leads_out || path.size() > kFindingPathBytesMax || path.find('\\') != std::string::npos) {
      Mistake(where + ".path", Quoted(path) + " is not a path relative to the checkout");
    }
  }

  AgentFindings result_;
  bool failed_ = false;
};

// A text member; absent is empty.
std::string Text(const Json& entry, const char* name, const std::string& where, Checker& out) {
  const Json* member = entry.Find(name);
  if (member == nullptr) return {};
  if (member->string() != nullptr) return *member->string();
  out.Mistake(where + "." + name, "not a string");
  return {};
}

int Line(const Json& entry, const char* name, const std::string& where, Checker& out) {
  const Json* member = entry.Find(name);
  if (member == nullptr) return 0;
  std::optional<int64_t> line = member->integer();
  if (line && *line >= 1 && *line <= kLineMax) return static_cast<int>(*line);
  out.Mistake(where + "." + name, "not a line number, which start at 1");
  return 0;
}

void ReadShort(const Json& entry, const std::string& where, Checker& out) {
  if (entry.object() == nullptr) return out.Mistake(where, "not an object"), out.Skip();
  for (const auto& [name, value] : *entry.object()) {
    if (std::find(kMembers.begin(), kMembers.end(), name) == kMembers.end()) {
      out.Mistake(where, "unknown member " + Quoted(name));
    }
  }
  Finding finding;
  finding.path = Text(entry, "path", where, out);
  finding.line = Line(entry, "line", where, out);
  finding.end_line = Line(entry, "end_line", where, out);
  finding.rule = Text(entry, "rule", where, out);
  finding.message = Text(entry, "message", where, out);
  if (entry.Find("suggestion") != nullptr) {
    finding.suggestion = Text(entry, "suggestion", where, out);
  }
  std::string severity = Text(entry, "severity", where, out);
  finding.severity = Severity::kWarning;
  if (!severity.empty() && !ParseName(kSeverityNames, severity, &finding.severity)) {
    out.Mistake(where + ".severity", Quoted(severity) + " is not error, warning or note");
  }
  out.Add(where, std::move(finding));
}

// The first element of a list member, or null.
const Json* First(const Json* object, const char* name) {
  const Json* list = object == nullptr ? nullptr : object->Find(name);
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return nullptr;
  return &list->array()->front();
}

const Json* Member(const Json* object, const char* name) {
  return object == nullptr ? nullptr : object->Find(name);
}

// SARIF 2.1.0, 3.58: what replaces a region of whole lines. Columns mean less than a line: such a
// fix is left out, and the result stays.
std::optional<std::string> FixOf(const Json& result, const Finding& finding) {
  const Json* replacement =
      First(First(First(&result, "fixes"), "artifactChanges"), "replacements");
  const Json* region = Member(replacement, "deletedRegion");
  if (region == nullptr || region->Find("startColumn") != nullptr) return std::nullopt;
  if (region->IntegerAt("startLine") != finding.line) return std::nullopt;
  if (region->IntegerAt("endLine", finding.line) != finding.end_line) return std::nullopt;
  const Json* inserted = Member(replacement, "insertedContent");
  return inserted == nullptr ? "" : inserted->StringAt("text");
}

void ReadResult(const Json& result, const std::string& where, Checker& out) {
  if (result.object() == nullptr) return out.Mistake(where, "not an object"), out.Skip();
  if (First(&result, "suppressions") != nullptr) return;
  Finding finding;
  finding.rule = result.StringAt("ruleId");
  const Json* message = result.Find("message");
  if (message != nullptr) finding.message = message->StringAt("text");
  std::string level = result.StringAt("level");
  finding.severity = level == "error"                     ? Severity::kError
                     : level == "note" || level == "none" ? Severity::kNote
                                                          : Severity::kWarning;
  const Json* physical = Member(First(&result, "locations"), "physicalLocation");
  if (const Json* artifact = Member(physical, "artifactLocation")) {
    std::string uri = artifact->StringAt("uri");
    if (uri.starts_with("./")) uri.erase(0, 2);
    finding.path = codec::PercentDecode(uri);
  }
  if (const Json* region = Member(physical, "region")) {
    finding.line =
        static_cast<int>(std::clamp<int64_t>(region->IntegerAt("startLine"), 0, kLineMax));
    int64_t last = region->IntegerAt("endLine", finding.line);
    finding.end_line = static_cast<int>(std::clamp<int64_t>(last, 0, kLineMax));
    if (finding.line > 0) finding.suggestion = FixOf(result, finding);
  }
  out.Add(where, std::move(finding));
}

void ReadSarif(const Json& runs, Checker& out) {
  for (size_t r = 0; r < runs.array()->size(); ++r) {
    const Json* results = (*runs.array())[r].Find("results");
    if (results == nullptr || results->array() == nullptr) continue;
    for (size_t i = 0; i < results->array()->size(); ++i) {
      ReadResult((*results->array())[i],
                 "runs[" + std::to_string(r) + "].results[" + std::to_string(i) + "]", out);
    }
  }
}

}  // namespace

AgentFindings ParseAgentFindings(std::string_view text) {
  Checker out;
  Result<Json> json = codec::ParseJson(text);
  if (!json.ok()) {
    out.Mistake(kAgentFindingsFile, json.error().what);
    return out.Take();
  }
  const Json* runs = json.value().Find("runs");
  const Json* findings = json.value().Find("findings");
  if (runs != nullptr && runs->array() != nullptr) {
    ReadSarif(*runs, out);
  } else if (findings != nullptr && findings->array() != nullptr) {
    for (size_t i = 0; i < findings->array()->size(); ++i) {
      ReadShort((*findings->array())[i], "findings[" + std::to_string(i) + "]", out);
    }
  } else {
    out.Mistake(kAgentFindingsFile,
                R"(neither {"findings": [...]} nor SARIF 2.1.0, which has "runs")");
  }
  return out.Take();
}

}  // namespace report
