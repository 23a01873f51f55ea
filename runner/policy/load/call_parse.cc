// SPDX-License-Identifier: Apache-2.0
#include "policy/load/call_parse.h"

#include <algorithm>

#include "codec/call/json_rpc.h"
#include "codec/glob/glob.h"
#include "policy/load/rule_parse.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

bool HasWildcard(std::string_view pattern) {
  return pattern.find_first_of("*?[]{}") != std::string_view::npos;
}

bool CoversToolsCall(const HttpRule& rule) {
  return rule.method == "*" || codec::GlobMatches(rule.method, codec::kToolsCall, '.');
}

Status RefuseRequestKeys(const Reader& reader, const Fields& fields) {
  for (std::string_view key : {"path", "query"}) {
    if (!fields.Has(key)) continue;
    return reader.Invalid(fields.At(key),
                          "a call has no '" + std::string(key) + "': its rules match by method",
                          "remove '" + std::string(key) + "', or set 'path' on the endpoint");
  }
  return Ok();
}

// Returns the node that matches the tool's name, by either of its two keys; null if there is none.
Result<const YamlNode*> FindToolMatcher(const Reader& reader, const Fields& fields) {
  const YamlNode* tool = fields.Find("tool");
  const YamlNode* params = fields.Find("params");
  if (params == nullptr) return tool;
  if (params->kind != YamlKind::kMapping) return fields.WrongType("params", "a mapping");
  for (const YamlEntry& entry : params->entries) {
    if (entry.key != "name") {
      return reader.Invalid(entry.at,
                            "'params." + entry.key + "': only the tool name can be matched",
                            "write 'params: {name: ...}', or 'tool: ...'");
    }
    if (tool != nullptr) {
      return reader.Invalid(entry.at, "'tool' and 'params.name' are the same matcher",
                            "remove 'params'");
    }
    tool = &entry.value;
  }
  return tool;
}

Result<std::vector<std::string>> ParseTools(Reader* reader, const Fields& fields,
                                            const Endpoint& endpoint) {
  const YamlNode* matcher = TRY(FindToolMatcher(*reader, fields));
  if (matcher == nullptr) return std::vector<std::string>();
  std::vector<std::string> tools = TRY(ParsePatterns(reader, "tool", *matcher));
  bool wild = std::any_of(tools.begin(), tools.end(), HasWildcard);
  if (wild && !endpoint.mcp.strict_tool_names) {
    return reader->Invalid(matcher->at,
                           "a pattern for tool names needs 'strict_tool_names': without it, a name "
                           "may contain any character",
                           "remove 'strict_tool_names: false', or name the tools");
  }
  return tools;
}

Result<std::string> ParseJsonRpcMethod(const Reader& reader, const Fields& fields) {
  std::string method = TRY(fields.Text("method"));
  if (method.empty()) {
    return reader.Invalid(fields.at(), "a json-rpc rule needs a 'method'",
                          "write 'method: \"*\"' for every method");
  }
  if (method != "*" && HasWildcard(method)) {
    return reader.Invalid(
        fields.At("method"),
        "json-rpc method '" + method + "' is a pattern; only '*' by itself is supported",
        "write one rule per method");
  }
  return method;
}

Result<std::string> ParseMcpMethod(const Reader& reader, const Fields& fields,
                                   const Endpoint& endpoint, bool names_tool) {
  std::string method = TRY(fields.Text("method"));
  if (method.empty()) {
    if (endpoint.mcp.allow_all_known_methods)
      return std::string(names_tool ? codec::kToolsCall : "*");
    return reader.Invalid(
        fields.at(), "an mcp rule needs a 'method'",
        names_tool ? "write 'method: tools/call'"
                   : "write 'method: initialize', or 'mcp: {allow_all_known_mcp_methods: true}'");
  }
  if (HasWildcard(method) && !method.starts_with("tools/")) {
    return reader.Invalid(
        fields.At("method"),
        "mcp method '" + method + "' is a pattern; patterns are supported only after 'tools/'",
        "write 'mcp: {allow_all_known_mcp_methods: true}' for every method");
  }
  if (names_tool && method != codec::kToolsCall) {
    return reader.Invalid(fields.At("method"),
                          "'tool' applies only to 'tools/call', not to '" + method + "'",
                          "write 'method: tools/call'");
  }
  TRY(CheckGlob(reader, fields.At("method"), "method", method, '.'));
  return method;
}

}  // namespace

Result<std::vector<HttpRule>> ParseCallMatch(Reader* reader, const Fields& fields,
                                             const Endpoint& endpoint) {
  TRY(RefuseRequestKeys(*reader, fields));
  HttpRule rule;
  rule.at = fields.at();
  if (endpoint.protocol == Protocol::kJsonRpc) {
    TRY(RefuseTools(*reader, fields));
    rule.method = TRY(ParseJsonRpcMethod(*reader, fields));
    return std::vector<HttpRule>{rule};
  }
  std::vector<std::string> tools = TRY(ParseTools(reader, fields, endpoint));
  rule.method = TRY(ParseMcpMethod(*reader, fields, endpoint, !tools.empty()));
  if (tools.empty()) return std::vector<HttpRule>{rule};
  std::vector<HttpRule> rules;
  for (std::string& tool : tools) {
    rule.tool = std::move(tool);
    rules.push_back(rule);
  }
  return rules;
}

Status RefuseTools(const Reader& reader, const Fields& fields) {
  for (std::string_view key : {"tool", "params"}) {
    if (!fields.Has(key)) continue;
    return reader.Invalid(fields.At(key), "'" + std::string(key) + "' needs 'protocol: mcp'",
                          "remove '" + std::string(key) + "', or write 'protocol: mcp'");
  }
  return Ok();
}

Status CheckToolConflicts(const Reader& reader, const Endpoint& endpoint) {
  bool names_tool = std::any_of(endpoint.rules.begin(), endpoint.rules.end(),
                                [](const HttpRule& rule) { return !rule.tool.empty(); });
  if (endpoint.protocol != Protocol::kMcp || !names_tool) return Ok();
  for (const std::vector<HttpRule>* rules : {&endpoint.rules, &endpoint.deny_rules}) {
    for (const HttpRule& rule : *rules) {
      if (!rule.tool.empty() || !CoversToolsCall(rule)) continue;
      bool denies = rules == &endpoint.deny_rules;
      return reader.Invalid(rule.at,
                            "method '" + rule.method + "' " + (denies ? "denies" : "allows") +
                                " every tool, although other rules list the tools to allow",
                            "add 'tool: NAME' to this rule, or remove it");
    }
  }
  return Ok();
}

}  // namespace policy
