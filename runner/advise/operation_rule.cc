// SPDX-License-Identifier: Apache-2.0
#include "advise/operation_rule.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "advise/suggest.h"
#include "advise/suggestion.h"
#include "base/join.h"
#include "codec/call/json_rpc.h"

namespace advise {
namespace {

constexpr size_t kWordBytesMax = 256;

// Returns whether `text`, which came from outside, can stand in quotes and is not a pattern there.
bool IsWord(std::string_view text) {
  constexpr std::string_view kSpecial = "'\\*?[]{}";
  return !text.empty() && text.size() <= kWordBytesMax &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return c > 0x20 && c < 0x7F && kSpecial.find(static_cast<char>(c)) == std::string::npos;
         });
}

// The field that stands for a persisted query: no document can ask for one of such a name.
std::string PersistedField(const policy::Operation& operation) {
  return "{operation_type: query, fields: ['persisted:" + operation.persisted_query + "']}";
}

// Returns a rule for just this call; empty if there is none.
std::string CallRule(const policy::Operation& operation) {
  bool of_tool = operation.method == codec::kToolsCall;
  if (!IsWord(operation.method) || (of_tool && !IsWord(operation.tool))) return {};
  return "{method: '" + operation.method + "'" +
         (of_tool ? ", tool: '" + operation.tool + "'}" : "}");
}

std::string OperationRule(const policy::Operation& operation) {
  constexpr std::string_view kTypes[] = {"query", "mutation", "subscription"};
  bool known =
      std::find(std::begin(kTypes), std::end(kTypes), operation.operation_type) != std::end(kTypes);
  bool words = std::all_of(operation.fields.begin(), operation.fields.end(), IsWord);
  if (!known || !words || operation.fields.empty()) return {};
  return "{operation_type: " + operation.operation_type + ", fields: ['" +
         Join(operation.fields, "', '") + "']}";
}

}  // namespace

std::string RuleList(const std::vector<std::string>& rules) {
  return rules.empty() ? "" : "{allow: " + Join(rules, "}, {allow: ") + "}";
}

std::optional<EndpointAddition> AdditionFor(const Denial& denial) {
  EndpointAddition addition;
  for (const policy::Operation& operation : denial.operations) {
    bool call = !operation.method.empty();
    std::string rule = call ? CallRule(operation) : OperationRule(operation);
    if (!call && operation.operation_type.empty() && IsWord(operation.persisted_query)) {
      rule = PersistedField(operation);
      addition.queries.push_back("'" + operation.persisted_query + "': " + rule);
    }
    if (rule.empty() || (call && denial.method != "POST")) return std::nullopt;
    addition.rules.push_back(std::move(rule));
  }
  bool of_head = denial.operations.empty() && denial.protocol == "websocket";
  if (of_head && IsPlain(denial.method) && IsPlain(denial.path)) {
    addition.rules.push_back(RequestRule(denial.method, denial.path));
  }
  if (addition.rules.empty()) return std::nullopt;
  return addition;
}

}  // namespace advise
