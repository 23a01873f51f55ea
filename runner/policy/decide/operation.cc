// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/operation.h"

#include <algorithm>
#include <utility>

#include "base/join.h"
#include "codec/call/json_rpc.h"
#include "policy/decide/body_decide.h"

namespace policy {
namespace {

// One request's; a client chose their number and their names.
constexpr size_t kOperationsMax = 16;
constexpr size_t kOperationBytesMax = 4096;

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

}  // namespace

std::vector<Operation> RefusedOperations(const JudgedBody& decision) {
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
    const std::string of = operation.fields.empty() ? "" : " (" + Join(operation.fields) + ")";
    return operation.method + (operation.tool.empty() ? "" : " ") + operation.tool + of;
  }
  if (operation.operation_type.empty()) return "persisted query " + operation.persisted_query;
  std::string text = operation.operation_type;
  if (!operation.operation_name.empty()) text += " " + operation.operation_name;
  if (!operation.fields.empty()) text += " {" + Join(operation.fields) + "}";
  return text;
}

}  // namespace policy
