// SPDX-License-Identifier: Apache-2.0
#include "policy/load/rule_parse.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/glob/glob.h"
#include "policy/load/call_parse.h"
#include "policy/load/operation_parse.h"
#include "policy/model/access.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

// The nodes of a matcher's patterns: the matcher itself, or what its `any` or `glob` holds.
Result<std::vector<const YamlNode*>> PatternNodes(Reader* reader, std::string_view what,
                                                  const YamlNode& node) {
  std::vector<const YamlNode*> nodes;
  if (node.kind != YamlKind::kMapping) {
    nodes.push_back(&node);
    return nodes;
  }
  Fields fields = TRY(Fields::Open(reader, node, Section::kMatcher));
  const YamlNode* any = TRY(fields.List("any"));
  const YamlNode* glob = fields.Find("glob");
  if ((any == nullptr) == (glob == nullptr)) {
    return reader->Invalid(node.at, std::string(what) + " needs exactly one of 'any' and 'glob'",
                           "write '{any: [...]}'");
  }
  if (glob != nullptr) nodes.push_back(glob);
  if (any != nullptr) {
    for (const YamlNode& item : any->items) nodes.push_back(&item);
  }
  return nodes;
}

// `query`, empty if there is none.
Result<std::vector<QueryMatcher>> ParseQuery(Reader* reader, const Fields& fields) {
  std::vector<QueryMatcher> query;
  const YamlNode* node = fields.Find("query");
  if (node == nullptr || node->kind == YamlKind::kNull) return query;
  if (node->kind != YamlKind::kMapping) return fields.WrongType("query", "a mapping");
  for (const YamlEntry& entry : node->entries) {
    std::vector<std::string> patterns =
        TRY(ParsePatterns(reader, "query '" + entry.key + "'", entry.value));
    query.push_back({entry.key, std::move(patterns)});
  }
  return query;
}

// rest, and websocket's handshakes and plain text messages.
Result<HttpRule> ParseRequestMatch(Reader* reader, const Fields& fields, Protocol protocol) {
  HttpRule rule;
  rule.at = fields.at();
  std::string method = TRY(fields.Text("method"));
  rule.method = ascii::UpperCase(method);
  rule.path = TRY(fields.Text("path"));
  if (rule.method.empty()) {
    return reader->Invalid(rule.at, "a rule without a 'method' matches nothing",
                           "write 'method: \"*\"' for every method");
  }
  if (rule.path.empty()) {
    return reader->Invalid(rule.at, "a rule without a 'path' matches nothing",
                           "write 'path: \"**\"' for every path");
  }
  TRY(CheckGlob(*reader, fields.At("path"), "path", rule.path, '/'));
  if (rule.path.find_first_of("/*{[") != 0) {
    reader->Warn(fields.At("path"),
                 "path '" + rule.path + "' matches nothing: every path starts with '/'");
  }
  if (!IsKnownMethod(protocol, rule.method)) {
    std::string of = protocol == Protocol::kWebSocket ? "WebSocket" : "HTTP";
    reader->Warn(fields.At("method"), "'" + rule.method + "' is not a method of " + of);
  }
  rule.query = TRY(ParseQuery(reader, fields));
  return rule;
}

Result<HttpRule> ParseSqlMatch(Reader* reader, const Fields& fields) {
  HttpRule rule;
  rule.at = fields.at();
  rule.command = TRY(fields.Text("command"));
  if (!rule.command.empty()) return rule;
  return reader->Invalid(rule.at, "an sql rule needs a 'command'",
                         "write 'command: \"*\"' for every command");
}

// OpenShell reads a key of another protocol and never looks at it again.
void WarnOfIgnored(Reader* reader, const Fields& fields, std::string_view protocol,
                   const std::vector<std::string_view>& keys) {
  for (std::string_view key : keys) {
    if (!fields.Has(key)) continue;
    reader->Warn(fields.At(key), "'" + std::string(key) + "' has no effect with 'protocol: " +
                                     std::string(protocol) + "'");
  }
}

// Refuses a rule of both kinds: on one WebSocket, handshakes are judged by method and path, GraphQL
// messages by operation.
Status RefuseMixture(const Reader& reader, const Fields& fields, bool on_websocket) {
  if (!on_websocket) return Ok();
  for (std::string_view key : {"method", "path", "query"}) {
    if (!fields.Has(key)) continue;
    return reader.Invalid(fields.At(key),
                          "a GraphQL rule for a WebSocket cannot have '" + std::string(key) + "'",
                          "write it as a separate rule: 'allow: {method: GET, path: \"/**\"}'");
  }
  return Ok();
}

Result<std::vector<HttpRule>> ParseMatch(Reader* reader, const Endpoint& endpoint,
                                         const YamlNode& node) {
  Fields fields = TRY(Fields::Open(reader, node, Section::kMatch));
  std::string_view protocol = ProtocolName(endpoint.protocol);
  bool is_call = endpoint.protocol == Protocol::kJsonRpc || endpoint.protocol == Protocol::kMcp;
  if (is_call) {
    WarnOfIgnored(reader, fields, protocol,
                  {"operation_type", "operation_name", "fields", "command"});
    return ParseCallMatch(reader, fields, endpoint);
  }
  TRY(RefuseTools(*reader, fields));
  std::vector<HttpRule> rules(1);
  bool on_websocket = endpoint.protocol == Protocol::kWebSocket;
  if (endpoint.protocol == Protocol::kGraphql || (on_websocket && NamesOperation(fields))) {
    TRY(RefuseMixture(*reader, fields, on_websocket));
    WarnOfIgnored(reader, fields, protocol, {"method", "path", "query", "command"});
    rules[0] = TRY(ParseOperationMatch(reader, fields));
  } else if (endpoint.protocol == Protocol::kSql) {
    WarnOfIgnored(reader, fields, protocol,
                  {"method", "path", "query", "operation_type", "operation_name", "fields"});
    rules[0] = TRY(ParseSqlMatch(reader, fields));
  } else {
    WarnOfIgnored(reader, fields, protocol,
                  {"operation_type", "operation_name", "fields", "command"});
    rules[0] = TRY(ParseRequestMatch(reader, fields, endpoint.protocol));
  }
  return rules;
}

void AddRules(const std::optional<std::vector<HttpRule>>& parsed, std::vector<HttpRule>* rules) {
  if (parsed) rules->insert(rules->end(), parsed->begin(), parsed->end());
}

}  // namespace

Result<std::vector<HttpRule>> ParseRules(Reader* reader, const Endpoint& endpoint,
                                         const YamlNode& list) {
  std::vector<HttpRule> rules;
  for (const YamlNode& item : list.items) {
    std::optional<Fields> fields = reader->Keep(Fields::Open(reader, item, Section::kRule));
    if (!fields) continue;
    const YamlNode* allow = fields->Find("allow");
    if (allow == nullptr) {
      reader->KeepError(reader->Invalid(fields->at(), "a rule needs 'allow'",
                                        "write 'allow: {method: GET, path: \"/**\"}'"));
      continue;
    }
    AddRules(reader->Keep(ParseMatch(reader, endpoint, *allow)), &rules);
  }
  return rules;
}

Result<std::vector<HttpRule>> ParseDenyRules(Reader* reader, const Endpoint& endpoint,
                                             const YamlNode& list) {
  std::vector<HttpRule> rules;
  for (const YamlNode& item : list.items) {
    AddRules(reader->Keep(ParseMatch(reader, endpoint, item)), &rules);
  }
  return rules;
}

Result<std::vector<std::string>> ParsePatterns(Reader* reader, std::string_view what,
                                               const YamlNode& node) {
  std::vector<std::string> patterns;
  for (const YamlNode* one : TRY(PatternNodes(reader, what, node))) {
    std::optional<std::string> pattern = codec::ScalarText(*one);
    if (!pattern) {
      return reader->Invalid(one->at, std::string(what) + " must be text or a mapping",
                             "write '\"*\"' or '{any: [...]}'");
    }
    // OpenShell does so, too.
    if (codec::IsYamlNumberOrBool(*one)) {
      return reader->Invalid(one->at,
                             std::string(what) + " must be text, not a number or a boolean",
                             "write '\"" + one->text + "\"'");
    }
    if (pattern->empty()) {
      return reader->Invalid(one->at, std::string(what) + " has an empty pattern",
                             "write '\"*\"' to match any text without a dot");
    }
    TRY(CheckGlob(*reader, one->at, what, *pattern, '.'));
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

Status CheckGlob(const Reader& reader, codec::Position at, std::string_view what,
                 std::string_view pattern, char delimiter) {
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, delimiter);
  if (glob.ok()) return Ok();
  return reader.Invalid(at,
                        std::string(what) + " '" + std::string(pattern) +
                            "' is not a valid pattern: " + glob.error().what,
                        "write a backslash before a literal '[' or '{'");
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
