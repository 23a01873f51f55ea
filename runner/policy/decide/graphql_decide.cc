// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/graphql_decide.h"

#include <algorithm>
#include <optional>

#include "codec/wire/http_head.h"
#include "policy/decide/judge.h"

namespace policy {
namespace {

using codec::GraphqlOperation;
using Operations = std::span<const GraphqlOperation>;

// An operation as rules see it: what the request carries, or what the registry knows.
struct Requested {
  std::string_view type;
  std::string_view name;
  const std::vector<std::string>* fields = nullptr;
};

// Returns nullopt for a persisted query that this endpoint does not know.
std::optional<Requested> Resolve(const GraphqlOperation& given, const Endpoint& endpoint) {
  if (!given.type.empty()) return Requested{given.type, given.name, &given.fields};
  if (!endpoint.allow_registered_queries || given.persisted_id.empty()) return std::nullopt;
  for (const PersistedQuery& known : endpoint.persisted_queries) {
    if (known.id != given.persisted_id) continue;
    return Requested{known.operation_type, known.operation_name, &known.fields};
  }
  return std::nullopt;
}

bool TypeAndNameMatch(const GraphqlRule& rule, const Requested& operation) {
  const std::string& type = rule.source->operation_type;
  if (type != "*" && !codec::EqualIgnoringCase(type, operation.type)) return false;
  return !rule.name.has_value() || rule.name->Matches(operation.name);
}

bool FieldMatches(const GraphqlRule& rule, const std::string& field) {
  return std::any_of(rule.fields.begin(), rule.fields.end(),
                     [&](const codec::Glob& glob) { return glob.Matches(field); });
}

bool Allows(const GraphqlRule& rule, const Requested& operation) {
  if (!TypeAndNameMatch(rule, operation)) return false;
  if (rule.any_field) return true;
  const std::vector<std::string>& fields = *operation.fields;
  return !fields.empty() &&
         std::all_of(fields.begin(), fields.end(),
                     [&](const std::string& field) { return FieldMatches(rule, field); });
}

bool Denies(const GraphqlRule& rule, const Requested& operation) {
  if (!TypeAndNameMatch(rule, operation)) return false;
  const std::vector<std::string>& fields = *operation.fields;
  return rule.any_field || std::any_of(fields.begin(), fields.end(), [&](const std::string& field) {
           return FieldMatches(rule, field);
         });
}

const HttpRule* FindDeny(const CompiledEndpoint& endpoint, Operations operations) {
  for (const GraphqlOperation& given : operations) {
    std::optional<Requested> operation = Resolve(given, *endpoint.source);
    if (!operation) continue;
    for (const GraphqlRule& rule : endpoint.graphql_deny) {
      if (Denies(rule, *operation)) return rule.source;
    }
  }
  return nullptr;
}

// Every operation must be allowed; the rule is the first one's.
EndpointVerdict FindAllow(const CompiledEndpoint& endpoint, Operations operations) {
  EndpointVerdict examined{EndpointVerdict::kAllowed, nullptr, Reason::kAllowed};
  for (const GraphqlOperation& given : operations) {
    std::optional<Requested> operation = Resolve(given, *endpoint.source);
    if (!operation) return {EndpointVerdict::kDenied, nullptr, Reason::kGraphqlUnregistered};
    auto rule = std::find_if(endpoint.graphql_allow.begin(), endpoint.graphql_allow.end(),
                             [&](const GraphqlRule& r) { return Allows(r, *operation); });
    if (rule == endpoint.graphql_allow.end()) {
      return {EndpointVerdict::kDenied, nullptr, Reason::kGraphqlBlocked};
    }
    if (examined.rule == nullptr) examined.rule = rule->source;
  }
  return examined;
}

EndpointVerdict Examine(const CompiledEndpoint& endpoint, const HttpRequest& request,
                        Operations operations) {
  EndpointVerdict head = ExamineHead(endpoint, request);
  if (head.kind == EndpointVerdict::kDenied)
    return {EndpointVerdict::kDenied, head.rule, Reason::kGraphqlBlocked};
  const HttpRule* deny = FindDeny(endpoint, operations);
  if (deny != nullptr) return {EndpointVerdict::kDenied, deny, Reason::kGraphqlBlocked};
  bool authoritative =
      endpoint.protocol() == Protocol::kGraphql || endpoint.protocol() == Protocol::kWebSocket;
  return authoritative ? FindAllow(endpoint, operations) : head;
}

}  // namespace

Verdict DecideGraphql(const Route& route, const HttpRequest& request, Operations operations) {
  if (!route.connection().allowed) return route.connection();
  std::string_view fault = RequestFault(request.path, request.query);
  if (!fault.empty() || operations.empty()) {
    return route.RefuseMalformed(Reason::kMalformedPath, request.path, fault);
  }
  return DecideReadings(request, [&](const HttpRequest& read) {
    return Judge(route).Decide(
        read.path, Reason::kGraphqlNotPermitted,
        [&](const CompiledEndpoint& endpoint) { return Examine(endpoint, read, operations); });
  });
}

}  // namespace policy
