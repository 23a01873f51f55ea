// SPDX-License-Identifier: Apache-2.0
#include "advise/rule_text.h"

#include <utility>

#include "base/join.h"

namespace advise {
namespace {

// Everything of a rule but its method.
std::string SubjectText(const policy::HttpRule& rule) {
  if (!rule.command.empty()) return rule.command;
  std::string text;
  if (!rule.operation_type.empty()) {
    text = rule.operation_type == "*" ? "every operation" : rule.operation_type;
    if (!rule.operation_name.empty()) text += " " + rule.operation_name;
    if (!rule.fields.empty()) text += " {" + Join(rule.fields, ", ") + "}";
    return text;
  }
  text = rule.tool.empty() ? rule.path : "of " + rule.tool;
  std::string query;
  for (const policy::QueryMatcher& matcher : rule.query) {
    query += query.empty() ? " with " : " and ";
    query += matcher.key + "=" + Join(matcher.any, "|");
  }
  return text + query;
}

std::string MethodText(policy::Protocol protocol, const std::string& method) {
  if (method != "*") return method;
  bool is_call = protocol == policy::Protocol::kJsonRpc || protocol == policy::Protocol::kMcp;
  return is_call ? "every call" : "every method";
}

}  // namespace

std::string RuleText(policy::Protocol protocol, const policy::HttpRule& rule) {
  std::string method = MethodText(protocol, rule.method);
  std::string subject = SubjectText(rule);
  return method + (method.empty() || subject.empty() ? "" : " ") + subject;
}

std::string RulesText(policy::Protocol protocol, const std::vector<policy::HttpRule>& rules) {
  std::vector<std::pair<std::string, std::string>> groups;  // Subject, methods.
  for (const policy::HttpRule& rule : rules) {
    std::string subject = SubjectText(rule);
    std::string method = MethodText(protocol, rule.method);
    bool joins = !groups.empty() && groups.back().first == subject;
    if (joins) {
      groups.back().second += ", " + method;
    } else {
      groups.emplace_back(subject, method);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [subject, methods] : groups) {
    texts.push_back(methods + (methods.empty() || subject.empty() ? "" : " ") + subject);
  }
  return Join(texts, "; ");
}

}  // namespace advise
