// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/policy_text.h"

#include <algorithm>

#include "codec/data/json.h"
#include "policy/model/access.h"
#include "policy/model/endpoint_keys.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace openshell {
namespace {

using codec::Json;
using policy::Endpoint;
using policy::HttpRule;
using policy::Protocol;

constexpr uint32_t kBodyBytesDefault = 65536;

void SetText(Json* json, const char* name, const std::string& value) {
  if (!value.empty()) json->Set(name, value);
}

void SetTrue(Json* json, const char* name, bool value) {
  if (value) json->Set(name, true);
}

Json QueryOf(const std::vector<policy::QueryMatcher>& query) {
  Json json;
  for (const policy::QueryMatcher& matcher : query) {
    Json any;
    any.Set("any", Json::FromStrings(matcher.any));
    json.Set(matcher.key, std::move(any));
  }
  return json;
}

constexpr std::string_view kAnyOperation = "*";
constexpr const char* kOperations[] = {"query", "mutation", "subscription"};

Json MatchOf(const HttpRule& rule) {
  Json json;
  SetText(&json, "method", rule.method);
  SetText(&json, "path", rule.path);
  if (!rule.query.empty()) json.Set("query", QueryOf(rule.query));
  SetText(&json, "operation_type", rule.operation_type);
  SetText(&json, "operation_name", rule.operation_name);
  if (!rule.fields.empty()) json.Set("fields", Json::FromStrings(rule.fields));
  SetText(&json, "tool", rule.tool);
  SetText(&json, "command", rule.command);
  return json;
}

void PushRule(const HttpRule& rule, bool allow, Json* list) {
  if (!allow) {
    list->Push(MatchOf(rule));
    return;
  }
  Json entry;
  entry.Set("allow", MatchOf(rule));
  list->Push(std::move(entry));
}

// OpenShell's engine refuses the '*' that its documents have for any operation.
Json RulesOf(const std::vector<HttpRule>& rules, bool allow) {
  Json list = Json::EmptyArray();
  for (const HttpRule& rule : rules) {
    if (rule.operation_type != kAnyOperation) {
      PushRule(rule, allow, &list);
      continue;
    }
    for (const char* operation : kOperations) {
      HttpRule one = rule;
      one.operation_type = operation;
      PushRule(one, allow, &list);
    }
  }
  return list;
}

// Returns whether the rules stand for "every method", so that none is needed.
bool OnlyAllowsAll(const Endpoint& endpoint) {
  return endpoint.mcp.allow_all_known_methods && endpoint.rules.size() == 1 &&
         endpoint.rules.front().method == "*" && endpoint.rules.front().tool.empty();
}

void SetRules(const Endpoint& endpoint, Json* json) {
  if (endpoint.access != policy::Access::kNone) {
    json->Set("access", policy::AccessName(endpoint.access));
  } else if (!endpoint.rules.empty() && !OnlyAllowsAll(endpoint)) {
    json->Set("rules", RulesOf(endpoint.rules, true));
  }
  if (!endpoint.deny_rules.empty()) json->Set("deny_rules", RulesOf(endpoint.deny_rules, false));
}

void SetPersisted(const Endpoint& endpoint, Json* json) {
  if (endpoint.allow_registered_queries) json->Set("persisted_queries", "allow_registered");
  if (endpoint.persisted_queries.empty()) return;
  Json queries;
  for (const policy::PersistedQuery& query : endpoint.persisted_queries) {
    Json entry;
    entry.Set("operation_type", query.operation_type);
    SetText(&entry, "operation_name", query.operation_name);
    if (!query.fields.empty()) entry.Set("fields", Json::FromStrings(query.fields));
    queries.Set(query.id, std::move(entry));
  }
  json->Set("graphql_persisted_queries", std::move(queries));
}

void SetBodies(const Endpoint& endpoint, Json* json) {
  const auto bytes = static_cast<int64_t>(endpoint.body_bytes_max);
  const bool bounded = endpoint.body_bytes_max != kBodyBytesDefault;
  Json options;
  switch (endpoint.protocol) {
    case Protocol::kGraphql:
    case Protocol::kWebSocket:
      if (bounded) json->Set("graphql_max_body_bytes", bytes);
      return;
    case Protocol::kJsonRpc:
      if (!bounded) return;
      options.Set("max_body_bytes", bytes);
      json->Set("json_rpc", std::move(options));
      return;
    case Protocol::kMcp:
      if (bounded) options.Set("max_body_bytes", bytes);
      if (!endpoint.mcp.strict_tool_names) options.Set("strict_tool_names", false);
      SetTrue(&options, "allow_all_known_mcp_methods", endpoint.mcp.allow_all_known_methods);
      if (!options.is_null()) json->Set("mcp", std::move(options));
      return;
    case Protocol::kL4:
    case Protocol::kTcp:
    case Protocol::kRest:
    case Protocol::kSql:
      return;
  }
}

void SetSigning(const Endpoint& endpoint, Json* json) {
  if (endpoint.signing == policy::Signing::kNone) return;
  json->Set("credential_signing", endpoint.signing == policy::Signing::kSigV4 ? "sigv4"
                                  : endpoint.signing == policy::Signing::kSigV4Body
                                      ? "sigv4:body"
                                      : "sigv4:no_body");
  SetText(json, "signing_service", endpoint.signing_service);
  SetText(json, "signing_region", endpoint.signing_region);
}

void SetKeys(const Endpoint& endpoint, Json* json) {
  for (const policy::EndpointKey& key : policy::kEndpointKeys) {
    if (endpoint.*key.member) json->Set(std::string(key.name), Json(true));
  }
}

Result<Json> EndpointOf(const Endpoint& endpoint, const std::string& provider) {
  Json json;
  SetText(&json, "host", endpoint.host);
  Json ports = Json::EmptyArray();
  for (uint16_t port : endpoint.ports) ports.Push(static_cast<int64_t>(port));
  json.Set("ports", std::move(ports));
  SetText(&json, "path", endpoint.path);
  if (endpoint.protocol != Protocol::kL4) {
    json.Set("protocol", policy::ProtocolName(endpoint.protocol));
  }
  if (endpoint.tls == policy::TlsMode::kSkip) json.Set("tls", "skip");
  if (policy::JudgesRequests(endpoint.protocol)) {
    const bool audits = endpoint.enforcement == policy::Enforcement::kAudit;
    json.Set("enforcement", audits ? "audit" : "enforce");
    SetRules(endpoint, &json);
  }
  if (!endpoint.allowed_ips.empty()) {
    json.Set("allowed_ips", Json::FromStrings(endpoint.allowed_ips));
  }
  SetKeys(endpoint, &json);
  SetPersisted(endpoint, &json);
  SetBodies(endpoint, &json);
  SetSigning(endpoint, &json);
  if (!provider.empty()) {
    Json binding;
    binding.Set("provider", provider);
    json.Set("credential_binding", std::move(binding));
  }
  return json;
}

Json FilesystemOf(const policy::FilesystemPolicy& filesystem) {
  static const std::vector<std::string> kRead = {"/usr",  "/lib",     "/lib64",      "/bin",
                                                 "/sbin", "/etc",     "/proc",       "/opt",
                                                 "/app",  "/var/log", "/dev/urandom"};
  static const std::vector<std::string> kWrite = {"/tmp", "/dev/null"};
  const bool unlisted = filesystem.read_only.empty() && filesystem.read_write.empty();
  Json json;
  json.Set("include_workdir", filesystem.include_workdir);
  json.Set("read_only", Json::FromStrings(unlisted ? kRead : filesystem.read_only));
  json.Set("read_write", Json::FromStrings(unlisted ? kWrite : filesystem.read_write));
  return json;
}

Json MiddlewaresOf(const std::vector<policy::Middleware>& middlewares) {
  Json all;
  for (const policy::Middleware& middleware : middlewares) {
    Json endpoints;
    endpoints.Set("include", Json::FromStrings(middleware.include));
    if (!middleware.exclude.empty()) {
      endpoints.Set("exclude", Json::FromStrings(middleware.exclude));
    }
    Json json;
    json.Set("middleware", "openshell/regex");
    json.Set("order", static_cast<int64_t>(middleware.order));
    json.Set("on_error", middleware.fail_open ? "fail_open" : "fail_closed");
    json.Set("endpoints", std::move(endpoints));
    all.Set(middleware.name, std::move(json));
  }
  return all;
}

// The provider for an endpoint; each binding that found one is marked.
Result<std::string> ProviderOf(const Endpoint& endpoint,
                               const std::vector<CredentialBinding>& credentials,
                               std::vector<bool>* used) {
  std::string provider = endpoint.credential_provider;
  for (size_t i = 0; i < credentials.size(); ++i) {
    const std::string& wanted = credentials[i].provider;
    for (const std::string& host : credentials[i].hosts) {
      if (endpoint.host.empty()) continue;
      if (endpoint.host != host) {
        if (!policy::HostMatches(endpoint.host, host)) continue;
        return Error{Code::kUnsupported,
                     "the credential for " + host + " would go to all of " + endpoint.host +
                         ", with OpenShell",
                     "write an endpoint for 'host: " + host + "' alone"};
      }
      if (!provider.empty() && provider != wanted) {
        return Error{Code::kUnsupported,
                     "OpenShell binds one provider to an endpoint, and " + host + " needs two"};
      }
      provider = wanted;
      (*used)[i] = true;
    }
  }
  return provider;
}

bool HasAnyOperation(const std::vector<HttpRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const HttpRule& rule) { return rule.operation_type == kAnyOperation; });
}

bool NamesTheMachine(const std::string& host) {
  return host == "host.openshell.internal" || host == "host.docker.internal" ||
         host == "host.containers.internal";
}

bool HasAnyOperation(const Endpoint& endpoint) {
  const bool expanded = endpoint.access == policy::Access::kNone;
  return (expanded && HasAnyOperation(endpoint.rules)) || HasAnyOperation(endpoint.deny_rules);
}

bool HasLaterWildcard(const Endpoint& endpoint) {
  const size_t dot = endpoint.host.find('.');
  return dot != std::string::npos && endpoint.host.find('*', dot) != std::string::npos;
}

// What an endpoint means in one generation or in both, where that is not what it means here.
struct EndpointDifference {
  bool in_00;
  bool in_01;
  bool (*applies)(const Endpoint& endpoint);
  std::string Endpoint::*name;  // What "%" stands for; null: it is not there.
  std::string_view what;
};

constexpr EndpointDifference kEndpointDifferences[] = {
    {true, true, [](const Endpoint& one) { return one.protocol_implied; }, nullptr,
     "'access' without 'protocol' is written with 'protocol: rest': OpenShell would enforce "
     "nothing"},
    {true, true, [](const Endpoint& one) { return HasAnyOperation(one); }, nullptr,
     "operation_type '*' is written as query, mutation and subscription: OpenShell refuses '*'"},
    {true, false, [](const Endpoint& one) { return NamesTheMachine(one.host); }, &Endpoint::host,
     "% is the machine of the gateway there, by its address on the sandbox's "
     "network: a server that listens on loopback alone is not reached"},
    {false, true, [](const Endpoint& one) { return HasLaterWildcard(one); }, nullptr,
     "a wildcard behind the first label of a host may be refused"},
    {false, true, [](const Endpoint& one) { return one.protocol == Protocol::kSql; }, nullptr,
     "'protocol: sql' is not documented, and may be refused"},
    {false, true, [](const Endpoint& one) { return one.protocol == Protocol::kMcp; }, nullptr,
     "only MCP 2025-11-25 passes, since 'mcp.versions' is not written; here, any revision does"},
    {true, true, [](const Endpoint& one) { return one.signing != policy::Signing::kNone; }, nullptr,
     "`run --backend openshell` has no credential for requests that are signed"},
    {true, true, [](const Endpoint& one) { return !one.credential_provider.empty(); },
     &Endpoint::credential_provider, "the provider '%' has to be on OpenShell's gateway"},
    {false, true, [](const Endpoint& one) { return !one.credential_provider.empty(); },
     &Endpoint::credential_provider,
     "the credential of '%' is put into 'Authorization' alone, unless its profile says where "
     "('auth_style')"},
};

void AddDifferences(const Endpoint& endpoint, Generation generation,
                    std::vector<PolicyDifference>* all) {
  for (const EndpointDifference& one : kEndpointDifferences) {
    if (!(generation == Generation::k00 ? one.in_00 : one.in_01) || !one.applies(endpoint)) {
      continue;
    }
    std::string what(one.what);
    if (one.name != nullptr) what.replace(what.find('%'), 1, endpoint.*one.name);
    all->push_back({endpoint.at, std::move(what)});
  }
}

}  // namespace

Result<std::string> RenderPolicy(const policy::Policy& policy,
                                 const std::vector<CredentialBinding>& credentials) {
  std::vector<bool> used(credentials.size());
  Json network = Json::EmptyObject();
  for (const policy::NetworkPolicy& entry : policy.network) {
    Json endpoints = Json::EmptyArray();
    for (const Endpoint& endpoint : entry.endpoints) {
      std::string provider = TRY(ProviderOf(endpoint, credentials, &used));
      Json json = TRY(EndpointOf(endpoint, provider));
      endpoints.Push(std::move(json));
    }
    Json binaries = Json::EmptyArray();
    for (const std::string& path : entry.binaries) {
      Json binary;
      binary.Set("path", path == policy::kAgentPrograms ? "/**" : path);
      binaries.Push(std::move(binary));
    }
    Json json;
    json.Set("name", entry.name);
    json.Set("endpoints", std::move(endpoints));
    json.Set("binaries", std::move(binaries));
    network.Set(entry.key, std::move(json));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const std::string host = credentials[i].hosts.empty() ? "" : credentials[i].hosts.front();
    return Error{Code::kUnsupported,
                 "no endpoint of the policy has the host of a credential, " + host,
                 "add '" + host + ":443:read-write' to the policy"};
  }
  Json root;
  root.Set("version", int64_t{1});
  root.Set("filesystem_policy", FilesystemOf(policy.filesystem));
  const bool required = policy.landlock == policy::LandlockMode::kHardRequirement;
  Json landlock;
  landlock.Set("compatibility", required ? "hard_requirement" : "best_effort");
  root.Set("landlock", std::move(landlock));
  Json process;
  if (policy.process.run_as_user) process.Set("run_as_user", *policy.process.run_as_user);
  if (policy.process.run_as_group) process.Set("run_as_group", *policy.process.run_as_group);
  if (!process.is_null()) root.Set("process", std::move(process));
  root.Set("network_policies", std::move(network));
  if (!policy.middlewares.empty()) {
    root.Set("network_middlewares", MiddlewaresOf(policy.middlewares));
  }
  return codec::RenderJson(root);
}

std::vector<PolicyDifference> DifferencesOf(const policy::ParsedPolicy& parsed,
                                            Generation generation) {
  std::vector<PolicyDifference> all;
  const policy::Policy& policy = parsed.policy;
  if (parsed.short_form) {
    all.push_back({{},
                   "the endpoints are the agent's here; there, any program of the sandbox may "
                   "use them, and the defaults are written out"});
  }
  if (policy.filesystem.read_only.empty() && policy.filesystem.read_write.empty()) {
    all.push_back({{}, "no paths are listed: those of the usual programs are written"});
  }
  if (policy.after_untrusted.used()) {
    all.push_back({{},
                   "'after_untrusted' is not written: OpenShell cannot tell when a stranger's text "
                   "is read, and `run --backend openshell` narrows the policy from the beginning"});
  }
  if (!policy.hosted_tools.empty()) {
    all.push_back({{},
                   "'hosted_tools' is not written: OpenShell cannot enforce it, and `run --backend "
                   "openshell` refuses it"});
  }
  bool inspects = false;
  for (const policy::NetworkPolicy& entry : policy.network) {
    for (const Endpoint& endpoint : entry.endpoints) {
      inspects = inspects || policy::JudgesRequests(endpoint.protocol);
      AddDifferences(endpoint, generation, &all);
    }
  }
  if (inspects) {
    all.push_back(
        {{},
         "its own engine judges the requests, and accepts some that are refused here: see "
         "docs/reference/openshell-differences.md"});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  // Endpoints that are written out have no line: what holds of several is said once.
  const auto same = [](const auto& a, const auto& b) {
    return a.at.line == 0 && b.at.line == 0 && a.what == b.what;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

}  // namespace openshell
