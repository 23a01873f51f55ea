// SPDX-License-Identifier: Apache-2.0
#include "report/agent_findings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
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
  // `tops` are the absolute paths of the checkout.
  explicit Checker(std::span<const std::string> tops) : tops_(tops) {}

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

  // Returns the path from the checkout's top where `path` leads there, else `path`.
  std::string InCheckout(std::string path) const {
    for (const std::string& top : tops_) {
      if (path.starts_with(top + "/")) return path.substr(top.size() + 1);
    }
    while (path.starts_with("./")) path.erase(0, 2);
    return path;
  }

 private:
  void CheckPath(const std::string& where, const std::string& path) {
    std::string framed = "/" + path + "/";
    bool leads_out = path[0] == '/' || framed.find("/../") != std::string::npos ||
                     framed.find("/./") != std::string::npos ||
                     framed.find("//") != std::string::npos;
    if (leads_out || path.size() > kFindingPathBytesMax || path.find('\\') != std::string::npos ||
        path.find('\0') != std::string::npos) {
      Mistake(where + ".path", Quoted(path) + " is not a path relative to the checkout");
    }
  }

  std::span<const std::string> tops_;
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
  finding.path = out.InCheckout(Text(entry, "path", where, out));
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

// Returns the element of a list member at `index`, or null.
const Json* At(const Json* list, int64_t index) {
  if (list == nullptr || list->array() == nullptr || index < 0) return nullptr;
  const auto place = static_cast<size_t>(index);
  return place < list->array()->size() ? &(*list->array())[place] : nullptr;
}

std::string TextIn(const Json* message) {
  if (message == nullptr) return {};
  std::string text = message->StringAt("text");
  return text.empty() ? message->StringAt("markdown") : text;
}

// SARIF 2.1.0, 3.11.5: `{0}` is the first argument, and `{{` a brace.
std::string WithArguments(std::string_view text, const Json* arguments) {
  if (At(arguments, 0) == nullptr) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const size_t digits = rest.substr(1).find_first_not_of("0123456789");
    if (rest[0] == '{' && digits > 0 && digits < 6 && rest[1 + digits] == '}') {
      int number = 0;
      std::from_chars(rest.data() + 1, rest.data() + 1 + digits, number);
      const Json* argument = At(arguments, number);
      const bool known = argument != nullptr && argument->string() != nullptr;
      out += known ? *argument->string() : std::string(rest.substr(0, digits + 2));
      i += digits + 1;
    } else {
      out += rest[0];
      if (rest.starts_with("{{") || rest.starts_with("}}")) ++i;
    }
  }
  return out;
}

// SARIF 2.1.0, 3.11.6: `[text](1)` leads to another place of the same result, which is not shown;
// another bracket is written `\[`.
std::string WithoutLinks(std::string_view text) {
  std::string out;
  size_t open = std::string::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("\\[") || rest.starts_with("\\]")) {
      out += text[++i];
      continue;
    }
    if (rest[0] == '[') open = out.size();
    const size_t digits = rest.starts_with("](") ? rest.find_first_not_of("0123456789", 2) : 0;
    if (open != std::string::npos && digits > 2 && digits < rest.size() && rest[digits] == ')') {
      out.erase(open, 1);
      i += digits;
      open = std::string::npos;
    } else {
      out += rest[0];
    }
  }
  return out;
}

// Returns the path that a URI names, absolute or not, without `.` and `..`.
std::string PathOfUri(std::string uri) {
  if (uri.starts_with("file:")) {
    uri.erase(0, 5);
    if (uri.starts_with("//")) uri.erase(0, std::min(uri.size(), uri.find('/', 2)));
  } else if (uri.find("://") != std::string::npos) {
    return uri;
  }
  return std::filesystem::path(codec::PercentDecode(uri)).lexically_normal().string();
}

// One run of a SARIF log: what its results refer to.
class SarifRun {
 public:
  explicit SarifRun(const Json& run) : run_(run), driver_(Member(run.Find("tool"), "driver")) {
    AddRules(driver_);
    for (int64_t i = 0; const Json* extension = At(Extensions(), i); ++i) AddRules(extension);
  }

  // `where` names the result in mistakes.
  void Read(const Json& result, const std::string& where, Checker& out) const;

 private:
  const Json* Extensions() const { return Member(run_.Find("tool"), "extensions"); }
  void AddRules(const Json* component) {
    const Json* rules = Member(component, "rules");
    for (int64_t i = 0; const Json* rule = At(rules, i); ++i)
      rules_.emplace(rule->StringAt("id"), rule);
  }
  const Json* RuleOf(const Json& result, const std::string& id) const;
  std::string MessageOf(const Json* message, const Json* rule) const;
  std::string PathOf(const Json* artifact, const Checker& out) const;

  const Json& run_;
  const Json* driver_;
  std::map<std::string, const Json*> rules_;
};

// SARIF 2.1.0, 3.52: by its place in the tool or an extension, or by an id, of which the rule's may
// be the beginning.
const Json* SarifRun::RuleOf(const Json& result, const std::string& id) const {
  const Json* reference = result.Find("rule");
  const Json* component = Member(reference, "toolComponent");
  const Json* extension =
      component == nullptr ? nullptr : At(Extensions(), component->IntegerAt("index", -1));
  const int64_t index = reference == nullptr ? -1 : reference->IntegerAt("index", -1);
  const Json* rules = Member(extension == nullptr ? driver_ : extension, "rules");
  const Json* rule = At(rules, result.IntegerAt("ruleIndex", index));
  for (std::string part = id; rule == nullptr && !part.empty();) {
    const auto known = rules_.find(part);
    if (known != rules_.end()) rule = known->second;
    part.resize(part.find('/') == std::string::npos ? 0 : part.rfind('/'));
  }
  return rule;
}

std::string SarifRun::MessageOf(const Json* message, const Json* rule) const {
  std::string text = TextIn(message);
  if (message != nullptr) {
    const std::string id = message->StringAt("id");
    if (text.empty()) text = TextIn(Member(Member(rule, "messageStrings"), id.c_str()));
    if (text.empty()) text = TextIn(Member(Member(driver_, "globalMessageStrings"), id.c_str()));
    text = WithoutLinks(WithArguments(text, message->Find("arguments")));
  }
  for (const char* name : {"shortDescription", "fullDescription", "help"}) {
    if (text.empty()) text = TextIn(Member(rule, name));
  }
  return text;
}

// SARIF 2.1.0, 3.4.
std::string SarifRun::PathOf(const Json* artifact, const Checker& out) const {
  constexpr int kBasesMax = 8;
  if (artifact != nullptr && artifact->Find("uri") == nullptr) {
    artifact = Member(At(run_.Find("artifacts"), artifact->IntegerAt("index", -1)), "location");
  }
  if (artifact == nullptr) return {};
  const std::string named = artifact->StringAt("uri");
  std::string uri = named;
  const Json* place = artifact;
  for (int i = 0; i < kBasesMax && place != nullptr; ++i) {
    if (uri.starts_with('/') || uri.find(':') != std::string::npos) break;
    const std::string base = place->StringAt("uriBaseId");
    place = Member(run_.Find("originalUriBaseIds"), base.c_str());
    std::string above = place == nullptr ? "" : place->StringAt("uri");
    if (!above.empty() && !above.ends_with('/')) above += '/';
    uri.insert(0, above);
  }
  std::string path = out.InCheckout(PathOfUri(uri));
  // The name stands for the checkout, which a tool in a container may have seen elsewhere.
  if (path.starts_with('/') && artifact->StringAt("uriBaseId") == "%SRCROOT%") {
    path = out.InCheckout(PathOfUri(named));
  }
  return path;
}

Severity SeverityOf(const std::string& level) {
  if (level == "error") return Severity::kError;
  return level == "note" || level == "none" ? Severity::kNote : Severity::kWarning;
}

void SarifRun::Read(const Json& result, const std::string& where, Checker& out) const {
  if (result.object() == nullptr) return out.Mistake(where, "not an object"), out.Skip();
  const std::string kind = result.StringAt("kind");
  if (kind == "pass" || kind == "notApplicable") return;
  if (First(&result, "suppressions") != nullptr || result.StringAt("baselineState") == "absent") {
    return;
  }
  Finding finding;
  finding.rule = result.StringAt("ruleId");
  const Json* reference = result.Find("rule");
  if (finding.rule.empty() && reference != nullptr) finding.rule = reference->StringAt("id");
  const Json* rule = RuleOf(result, finding.rule);
  if (finding.rule.empty() && rule != nullptr) finding.rule = rule->StringAt("id");
  finding.message = MessageOf(result.Find("message"), rule);
  std::string level = result.StringAt("level");
  if (level.empty() && !kind.empty() && kind != "fail") level = "none";
  const Json* usual = Member(rule, "defaultConfiguration");
  if (level.empty() && usual != nullptr) level = usual->StringAt("level");
  finding.severity = SeverityOf(level);
  const Json* physical = Member(First(&result, "locations"), "physicalLocation");
  finding.path = PathOf(Member(physical, "artifactLocation"), out);
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
    const SarifRun run((*runs.array())[r]);
    const Json* results = (*runs.array())[r].Find("results");
    if (results == nullptr || results->array() == nullptr) continue;
    for (size_t i = 0; i < results->array()->size(); ++i) {
      run.Read((*results->array())[i],
               "runs[" + std::to_string(r) + "].results[" + std::to_string(i) + "]", out);
    }
  }
}

}  // namespace

AgentFindings ParseAgentFindings(std::string_view text, std::span<const std::string> tops) {
  Checker out(tops);
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
