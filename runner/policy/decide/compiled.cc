// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/compiled.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policy/decide/compiled_tables.h"
#include "policy/load/overlap.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

std::vector<GraphqlRule> CompileGraphql(const std::vector<HttpRule>& rules, bool denying) {
  std::vector<GraphqlRule> compiled;
  for (const HttpRule& source : rules) {
    if (source.operation_type.empty()) continue;
    GraphqlRule rule;
    rule.source = &source;
    if (!source.operation_name.empty()) {
      rule.name = CompileGlob(source.operation_name, '.', denying);
      if (!rule.name) continue;
    }
    rule.any_field = source.fields.empty();
    for (const std::string& pattern : source.fields) {
      std::optional<codec::Glob> field = CompileGlob(pattern, '.', denying);
      if (field) rule.fields.push_back(std::move(*field));
    }
    compiled.push_back(std::move(rule));
  }
  return compiled;
}

std::vector<RpcRule> CompileRpc(const std::vector<HttpRule>& rules, bool denying) {
  std::vector<RpcRule> compiled;
  for (const HttpRule& source : rules) {
    std::optional<codec::Glob> method = CompileGlob(source.method, '.', denying);
    if (!method || source.method.empty()) continue;
    RpcRule rule;
    rule.source = &source;
    rule.method = std::move(*method);
    if (!source.tool.empty()) {
      rule.tool = CompileGlob(source.tool, '.', denying);
      if (!rule.tool) continue;
    }
    compiled.push_back(std::move(rule));
  }
  return compiled;
}

// Made in place and kept there: its parts point at each other.
class Compiler {
 public:
  explicit Compiler(CompiledTables* tables) : tables_(*tables) {}

  void Compile() {
    for (size_t i = 0; i < tables_.source.network.size(); ++i) {
      const NetworkPolicy& network = tables_.source.network[i];
      uint32_t number = static_cast<uint32_t>(i);
      for (const std::string& binary : network.binaries) AddBinary(binary, number);
      for (const Endpoint& endpoint : network.endpoints) AddEndpoint(endpoint, network, number);
    }
  }

 private:
  void AddBinary(const std::string& binary, uint32_t number) {
    if (binary.find('*') == std::string::npos) {
      tables_.binaries[binary].push_back(number);
      return;
    }
    auto [known, added] = pattern_numbers_.emplace(binary, tables_.binary_patterns.size());
    if (added) {
      std::optional<codec::Glob> glob = CompileGlob(binary, '/', false);
      tables_.binary_patterns.push_back({glob ? std::move(*glob) : codec::Glob(), {}});
    }
    tables_.binary_patterns[known->second].policies.push_back(number);
  }

  void AddEndpoint(const Endpoint& source, const NetworkPolicy& network, uint32_t number) {
    CompiledEndpoint endpoint;
    endpoint.policy = &network;
    endpoint.source = &source;
    endpoint.policy_number = number;
    if (IsHostPattern(source.host)) {
      endpoint.host = CompileGlob(source.host, '.', false);
      if (!endpoint.host) return;
    }
    endpoint.selector = codec::PathSelector(source.path);
    if (!source.path.empty() && source.path != "**") {
      endpoint.path = CompileGlob(source.path, '/', false);
      // Then only the text itself selects.
      if (!endpoint.path) endpoint.path.emplace();
    }
    endpoint.specificity = PathSpecificity(source);
    AddRules(&endpoint);
    tables_.endpoints.push_back(std::move(endpoint));
  }

  void AddRules(CompiledEndpoint* endpoint) {
    const Endpoint& source = *endpoint->source;
    if (endpoint->is_rpc()) {
      endpoint->rpc_allow = CompileRpc(source.rules, false);
      endpoint->rpc_deny = CompileRpc(source.deny_rules, true);
      endpoint->names_tools = std::any_of(source.rules.begin(), source.rules.end(),
                                          [](const HttpRule& rule) { return !rule.tool.empty(); });
      return;
    }
    endpoint->allow = HttpRules(source.rules, false);
    endpoint->deny = HttpRules(source.deny_rules, true);
    endpoint->graphql_allow = CompileGraphql(source.rules, false);
    endpoint->graphql_deny = CompileGraphql(source.deny_rules, true);
  }

  CompiledTables& tables_;
  std::map<std::string, size_t> pattern_numbers_;
};

std::unique_ptr<const CompiledTables> Compile(Policy policy) {
  auto tables = std::make_unique<CompiledTables>();
  tables->source = std::move(policy);
  Compiler(tables.get()).Compile();
  return tables;
}

bool Judges(const Endpoint& endpoint) {
  return endpoint.protocol != Protocol::kL4 && endpoint.protocol != Protocol::kTcp;
}

void JoinHandling(const CompiledEndpoint& compiled, std::string_view host, Handling* handling) {
  const Endpoint& endpoint = *compiled.source;
  if (handling->policy.empty()) handling->policy = compiled.policy->name;
  handling->skip_tls = handling->skip_tls || endpoint.tls == TlsMode::kSkip;
  handling->inspect =
      handling->inspect || (Judges(endpoint) && endpoint.protocol != Protocol::kSql);
  handling->captured = handling->captured || endpoint.protocol == Protocol::kTcp;
  handling->allow_encoded_slash = handling->allow_encoded_slash || endpoint.allow_encoded_slash;
  handling->declared_host =
      handling->declared_host || (endpoint.host == host && !endpoint.of_pattern);
  handling->allow_uninspected_credentials =
      handling->allow_uninspected_credentials || endpoint.allow_uninspected_credentials;
  for (const std::string& cidr : endpoint.allowed_ips) {
    std::vector<std::string>& known = handling->allowed_ips;
    if (std::find(known.begin(), known.end(), cidr) == known.end()) known.push_back(cidr);
  }
}

}  // namespace

bool CompiledEndpoint::CoversHost(std::string_view canonical) const {
  if (host.has_value()) return host->Matches(canonical);
  // An endpoint without a host is for every name; its allowed_ips decide where it may lead.
  return source->host.empty() || source->host == canonical;
}

std::vector<const CompiledEndpoint*> CompiledTables::FindEndpoints(std::string_view canonical,
                                                                   uint16_t port) const {
  std::vector<const CompiledEndpoint*> found;
  if (canonical.find('\0') != std::string_view::npos) return found;
  for (const CompiledEndpoint& endpoint : endpoints) {
    const std::vector<uint16_t>& ports = endpoint.source->ports;
    bool same_port = std::find(ports.begin(), ports.end(), port) != ports.end();
    if (same_port && endpoint.CoversHost(canonical)) found.push_back(&endpoint);
  }
  return found;
}

CompiledPolicy::CompiledPolicy(Policy policy) : tables_(Compile(std::move(policy))) {}
CompiledPolicy::~CompiledPolicy() = default;
CompiledPolicy::CompiledPolicy(CompiledPolicy&&) noexcept = default;
CompiledPolicy& CompiledPolicy::operator=(CompiledPolicy&&) noexcept = default;

const Policy& CompiledPolicy::source() const { return tables_->source; }

CallerMatch CompiledPolicy::MatchCaller(const Caller& caller) const {
  CallerMatch match;
  match.policies_.assign(tables_->source.network.size(), false);
  auto add_path = [&](const std::string& binary) {
    auto named = tables_->binaries.find(binary);
    if (named == tables_->binaries.end()) return;
    for (uint32_t number : named->second) match.policies_[number] = true;
  };
  auto add = [&](const std::string& binary) {
    if (binary.empty()) return;
    add_path(binary);
    for (const BinaryPattern& pattern : tables_->binary_patterns) {
      if (!pattern.glob.Matches(binary)) continue;
      for (uint32_t number : pattern.policies) match.policies_[number] = true;
    }
  };
  add(caller.binary);
  for (const std::string& ancestor : caller.ancestors) add(ancestor);
  for (const std::string& link : caller.links) add_path(link);
  if (caller.agent) add_path(std::string(kAgentPrograms));
  return match;
}

Route CompiledPolicy::FindRoute(const CallerMatch& caller, std::string_view host,
                                uint16_t port) const {
  Route route;
  route.host_ = CanonicalHost(host);
  route.port_ = port;
  route.narrowed_by_ = tables_->source.narrowed_by;
  Verdict& verdict = route.connection_;
  if (tables_->source.network.empty()) return route;
  verdict.reason = Reason::kNoEndpoint;
  for (const CompiledEndpoint* endpoint : tables_->FindEndpoints(route.host_, port)) {
    if (!caller.policies_[endpoint->policy_number]) {
      if (route.missed_.empty() || route.missed_.back() != endpoint->policy) {
        route.missed_.push_back(endpoint->policy);
      }
      continue;
    }
    if (!verdict.allowed) {
      verdict.allowed = true;
      verdict.reason = Reason::kAllowed;
      verdict.policy = endpoint->policy;
      verdict.endpoint = endpoint->source;
    }
    JoinHandling(*endpoint, route.host_, &route.handling_);
    if (Judges(*endpoint->source)) route.judging_.push_back(endpoint);
  }
  if (!verdict.allowed && !route.missed_.empty()) verdict.reason = Reason::kOtherBinary;
  return route;
}

bool CompiledPolicy::NamesHost(std::string_view host) const {
  std::string canonical = CanonicalHost(host);
  if (canonical.find('\0') != std::string::npos) return false;
  return std::any_of(
      tables_->endpoints.begin(), tables_->endpoints.end(),
      [&](const CompiledEndpoint& endpoint) { return endpoint.CoversHost(canonical); });
}

Decision DescribeVerdict(const Verdict& verdict, const Route& route, const Caller& caller,
                         const HttpRequest& request) {
  Decision decision;
  decision.allowed = verdict.allowed;
  decision.audited = verdict.audited;
  decision.policy = verdict.policy_name();
  decision.reason = RenderReason(verdict, route, caller, request);
  decision.at = verdict.at();
  decision.by_deny_rule = verdict.by_deny_rule();
  return decision;
}

}  // namespace policy
