// SPDX-License-Identifier: Apache-2.0
#include "policy/model/access.h"

#include <algorithm>

namespace policy {
namespace {

using Names = std::vector<std::string_view>;

Names GraphqlOperations(Access access) {
  if (access == Access::kReadOnly) return {"query"};
  if (access == Access::kReadWrite) return {"query", "mutation"};
  return {"*"};
}

Names Methods(Protocol protocol, Access access) {
  if (access == Access::kFull) return {"*"};
  bool writing = access == Access::kReadWrite;
  if (protocol == Protocol::kWebSocket) {
    return writing ? Names{"GET", "WEBSOCKET_TEXT"} : Names{"GET"};
  }
  return writing ? Names{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"}
                 : Names{"GET", "HEAD", "OPTIONS"};
}

}  // namespace

std::vector<HttpRule> ExpandAccess(Protocol protocol, Access access, codec::Position at) {
  std::vector<HttpRule> rules;
  if (access == Access::kNone) return rules;
  if (protocol == Protocol::kGraphql) {
    for (std::string_view operation : GraphqlOperations(access)) {
      HttpRule& rule = rules.emplace_back();
      rule.operation_type = operation;
      rule.at = at;
    }
    return rules;
  }
  for (std::string_view method : Methods(protocol, access)) {
    rules.push_back(RequestRule(method, "**", at));
  }
  return rules;
}

HttpRule RequestRule(std::string_view method, std::string_view path, codec::Position at) {
  HttpRule rule;
  rule.method = method;
  rule.path = path;
  rule.at = at;
  return rule;
}

bool KeepReading(Endpoint* endpoint) {
  // The request by which git fetches. Its body names commits that are wanted and those at hand:
  // https://git-scm.com/docs/http-protocol, "Smart Service git-upload-pack".
  constexpr std::string_view kGitFetchPath = "/git-upload-pack";
  const bool graphql = endpoint->protocol == Protocol::kGraphql;
  if (!graphql && endpoint->protocol != Protocol::kRest) return false;
  if (endpoint->tls == TlsMode::kSkip) return false;
  std::vector<HttpRule> reading;
  for (const HttpRule& rule : endpoint->rules) {
    if (!graphql && rule.method == "POST" && rule.path.ends_with(kGitFetchPath)) {
      reading.push_back(rule);
    }
    for (const HttpRule& reads : ExpandAccess(endpoint->protocol, Access::kReadOnly, rule.at)) {
      const std::string& asked = graphql ? rule.operation_type : rule.method;
      const std::string& wanted = graphql ? reads.operation_type : reads.method;
      if (asked != "*" && asked != wanted) continue;
      HttpRule& kept = reading.emplace_back(rule);
      (graphql ? kept.operation_type : kept.method) = wanted;
    }
  }
  endpoint->rules = std::move(reading);
  endpoint->access = Access::kNone;
  endpoint->only_reads = true;
  endpoint->enforcement = Enforcement::kEnforce;  // An audit lets writes pass.
  endpoint->allow_registered_queries = false;     // What they do is not known.
  return !endpoint->rules.empty();
}

std::string_view AccessName(Access access) {
  switch (access) {
    case Access::kNone:
      return "";
    case Access::kReadOnly:
      return "read-only";
    case Access::kReadWrite:
      return "read-write";
    case Access::kFull:
      return "full";
  }
  return "";
}

Names AccessNames() { return {"read-only", "read-write", "full"}; }

bool IsKnownMethod(Protocol protocol, std::string_view method) {
  Names known = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "*"};
  if (protocol == Protocol::kWebSocket) known = {"GET", "WEBSOCKET_TEXT", "*"};
  return std::find(known.begin(), known.end(), method) != known.end();
}

}  // namespace policy
