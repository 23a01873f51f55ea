// SPDX-License-Identifier: Apache-2.0
#include "policy/rule_parse.h"

#include <algorithm>
#include <cctype>

#include "codec/glob.h"
#include "policy/access.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// The patterns of one query key: text, `{glob: text}` or `{any: [text]}`.
Result<std::vector<std::string>> ParsePatterns(Reader* reader, const YamlEntry& entry) {
  std::vector<std::string> patterns;
  if (entry.value.kind == YamlKind::kMapping) {
    Fields fields = TRY(Fields::Open(reader, entry.value, Section::kQuery));
    bool any = fields.Find("any") != nullptr;
    bool glob = fields.Find("glob") != nullptr;
    if (any == glob) {
      return reader->Invalid(entry.at,
                             "query '" + entry.key + "' needs exactly one of 'any' and 'glob'");
    }
    if (any) patterns = TRY(fields.Texts("any"));
    if (glob) {
      std::string pattern = TRY(fields.Text("glob"));
      patterns.push_back(std::move(pattern));
    }
  } else {
    std::optional<std::string> text = ScalarText(entry.value);
    if (!text) {
      return reader->Invalid(
          entry.at, "query '" + entry.key + "' must be text or a mapping",
          "write '" + entry.key + ": \"*\"' or '" + entry.key + ": {any: [...]}'");
    }
    patterns.push_back(*text);
  }
  bool blank = std::any_of(patterns.begin(), patterns.end(),
                           [](const std::string& text) { return text.empty(); });
  if (patterns.empty() || blank) {
    return reader->Invalid(entry.at, "query '" + entry.key + "' has an empty pattern");
  }
  for (const std::string& pattern : patterns) {
    TRY(CheckGlob(*reader, entry.value.at, "query '" + entry.key + "'", pattern, '.'));
  }
  return patterns;
}

Result<HttpRule> ParseMatch(Reader* reader, const YamlNode& node) {
  Fields fields = TRY(Fields::Open(reader, node, Section::kMatch));
  HttpRule rule;
  rule.at = node.at;
  std::string method = TRY(fields.Text("method"));
  rule.method = UpperCase(method);
  rule.path = TRY(fields.Text("path"));
  if (rule.method.empty()) {
    return reader->Invalid(node.at, "a rule without a 'method' matches nothing",
                           "write 'method: \"*\"' for every method");
  }
  if (rule.path.empty()) {
    return reader->Invalid(node.at, "a rule without a 'path' matches nothing",
                           "write 'path: \"**\"' for every path");
  }
  TRY(CheckGlob(*reader, fields.At("path"), "path", rule.path, '/'));
  if (!rule.path.starts_with('/') && !rule.path.starts_with("**") && !rule.path.starts_with('{') &&
      !rule.path.starts_with('[')) {
    reader->Warn(fields.At("path"),
                 "path '" + rule.path + "' matches nothing: every path starts with '/'");
  }
  if (!IsKnownMethod(Protocol::kRest, rule.method)) {
    reader->Warn(fields.At("method"), "'" + rule.method + "' is no method of HTTP that is known");
  }
  const YamlNode* query = fields.Find("query");
  if (query == nullptr || query->kind == YamlKind::kNull) return rule;
  if (query->kind != YamlKind::kMapping) return fields.WrongType("query", "a mapping");
  for (const YamlEntry& entry : query->entries) {
    std::vector<std::string> patterns = TRY(ParsePatterns(reader, entry));
    rule.query.push_back({entry.key, std::move(patterns)});
  }
  return rule;
}

bool IsEmpty(const YamlNode* node) {
  return node == nullptr || node->kind == YamlKind::kNull ||
         (node->kind == YamlKind::kMapping && node->entries.empty());
}

}  // namespace

Result<std::vector<HttpRule>> ParseRules(Reader* reader, const YamlNode& list) {
  if (list.items.empty()) {
    return reader->Invalid(list.at, "an empty 'rules' list would deny all requests",
                           "remove 'rules', or write 'access: read-only'");
  }
  std::vector<Fields> entries;
  for (const YamlNode& item : list.items) {
    Fields fields = TRY(Fields::Open(reader, item, Section::kRule));
    entries.push_back(fields);
  }
  bool all_empty = std::all_of(entries.begin(), entries.end(),
                               [](const Fields& fields) { return IsEmpty(fields.Find("allow")); });
  if (all_empty) return reader->Invalid(list.at, "these rules would deny all requests");
  std::vector<HttpRule> rules;
  for (const Fields& fields : entries) {
    const YamlNode* allow = fields.Find("allow");
    if (allow == nullptr) {
      return reader->Invalid(fields.at(), "a rule needs 'allow'",
                             "write 'allow: {method: GET, path: \"/**\"}'");
    }
    HttpRule rule = TRY(ParseMatch(reader, *allow));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<std::vector<HttpRule>> ParseDenyRules(Reader* reader, const YamlNode& list) {
  if (list.items.empty()) {
    return reader->Invalid(list.at, "an empty 'deny_rules' list", "remove 'deny_rules'");
  }
  std::vector<HttpRule> rules;
  for (const YamlNode& item : list.items) {
    HttpRule rule = TRY(ParseMatch(reader, item));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Status CheckGlob(const Reader& reader, codec::Position at, std::string_view what,
                 std::string_view pattern, char delimiter) {
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, delimiter);
  if (glob.ok()) return Ok();
  return reader.Invalid(at, std::string(what) + " '" + std::string(pattern) +
                                "' is no pattern: " + glob.error().what);
}

bool HasShortStar(std::string_view path) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\') {
      ++i;
    } else if (path[i] == '*') {
      size_t end = path.find_first_not_of('*', i);
      if (end == std::string_view::npos) end = path.size();
      bool component = (i == 0 || path[i - 1] == '/') && (end == path.size() || path[end] == '/');
      if (end - i != 2 || !component) return true;
      i = end - 1;
    }
  }
  return false;
}

}  // namespace policy
