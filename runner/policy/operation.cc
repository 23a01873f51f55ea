// SPDX-License-Identifier: Apache-2.0
#include "policy/operation.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/join.h"
#include "codec/json_rpc.h"
#include "policy/body_decide.h"
#include "policy/suggest.h"
#include "policy/wish.h"

namespace policy {
namespace {

// One request's; a client chose their number and their names.
constexpr size_t kOperationsMax = 16;
constexpr size_t kOperationBytesMax = 4096;
constexpr size_t kWordBytesMax = 256;

bool RulesRefused(Reason reason) {
  return reason == Reason::kNotPermitted || reason == Reason::kDenyRule ||
         reason == Reason::kGraphqlUnregistered || reason == Reason::kGraphqlBlocked ||
         reason == Reason::kGraphqlNotPermitted;
}

size_t SizeOf(const Operation& operation) {
  size_t bytes = operation.operation_name.size() + operation.persisted_query.size() +
                 operation.method.size() + operation.tool.size();
  for (const std::string& field : operation.fields) bytes += field.size() + 8;
  return bytes;
}

// What can stand in quotes and is not a pattern there; it came from outside.
bool IsWord(std::string_view text) {
  constexpr std::string_view kSpecial = "'\\*?[]{}";
  return !text.empty() && text.size() <= kWordBytesMax &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return c > 0x20 && c < 0x7F && kSpecial.find(static_cast<char>(c)) == std::string::npos;
         });
}

// The field that stands for a persisted query: no document can ask for one of such a name.
std::string PersistedField(const Operation& operation) {
  return "{operation_type: query, fields: ['persisted:" + operation.persisted_query + "']}";
}

// Empty: none says just this.
std::string CallRule(const Operation& operation) {
  bool of_tool = operation.method == codec::kToolsCall;
  if (!IsWord(operation.method) || (of_tool && !IsWord(operation.tool))) return {};
  return "{method: '" + operation.method + "'" +
         (of_tool ? ", tool: '" + operation.tool + "'}" : "}");
}

std::string OperationRule(const Operation& operation) {
  constexpr std::string_view kTypes[] = {"query", "mutation", "subscription"};
  bool known =
      std::find(std::begin(kTypes), std::end(kTypes), operation.operation_type) != std::end(kTypes);
  bool words = std::all_of(operation.fields.begin(), operation.fields.end(), IsWord);
  if (!known || !words || operation.fields.empty()) return {};
  return "{operation_type: " + operation.operation_type + ", fields: ['" +
         Join(operation.fields, "', '") + "']}";
}

}  // namespace

std::vector<Operation> RefusedOperations(const BodyDecision& decision) {
  std::vector<Operation> operations;
  if (!RulesRefused(decision.verdict.reason)) return operations;
  size_t bytes = 0;
  auto add = [&](Operation operation) {
    if (std::find(operations.begin(), operations.end(), operation) != operations.end()) return;
    bytes += SizeOf(operation);
    operations.push_back(std::move(operation));
  };
  for (const codec::GraphqlOperation& given : decision.operations) {
    Operation operation{given.type, given.name, given.fields, {}, {}, {}};
    if (given.type.empty()) operation.persisted_query = given.persisted_id;
    add(std::move(operation));
  }
  for (const codec::JsonRpcCall& call : decision.calls) {
    add({{}, {}, {}, {}, call.method, call.tool});
  }
  if (operations.size() > kOperationsMax || bytes > kOperationBytesMax) operations.clear();
  return operations;
}

std::string OperationText(const Operation& operation) {
  if (!operation.method.empty()) {
    return operation.method + (operation.tool.empty() ? "" : " ") + operation.tool;
  }
  if (operation.operation_type.empty()) return "persisted query " + operation.persisted_query;
  std::string text = operation.operation_type;
  if (!operation.operation_name.empty()) text += " " + operation.operation_name;
  if (!operation.fields.empty()) text += " {" + Join(operation.fields) + "}";
  return text;
}

std::string RuleList(const std::vector<std::string>& rules) {
  return rules.empty() ? "" : "{allow: " + Join(rules, "}, {allow: ") + "}";
}

std::optional<EndpointAddition> AdditionFor(const Denial& denial) {
  EndpointAddition addition;
  for (const Operation& operation : denial.operations) {
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

}  // namespace policy
