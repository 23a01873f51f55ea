// SPDX-License-Identifier: Apache-2.0
#include "run/model_access.h"

#include <algorithm>

#include "agent/harness.h"
#include "base/sys.h"
#include "codec/wire/http_target.h"
#include "gateway/credential/provider.h"
#include "policy/model/access.h"

namespace run {
namespace {

std::string ValueOf(const agent::Pairs& variables, const std::string& name) {
  std::string value;
  for (const auto& [known, text] : variables) {
    if (known == name) value = text;
  }
  return value;
}

// The host of an address that a variable may give in place of `there`; an address that is not
// valid is refused where its credential is bound.
void Redirect(const std::string& base_url, policy::ModelHost* there) {
  Result<codec::RequestUrl> url = codec::ParseRequestUrl(base_url);
  if (base_url.empty() || !url.ok()) return;
  *there = {url.value().host, url.value().port};
}

std::vector<policy::ModelHost> HostsOfProvider(const std::string& name,
                                               const agent::Pairs& variables) {
  std::vector<policy::ModelHost> hosts;
  Result<gateway::Provider> provider = gateway::FindProvider(name);
  if (!provider.ok()) return hosts;
  for (const gateway::ProviderEndpoint& endpoint : provider.value().endpoints) {
    policy::ModelHost host{endpoint.host, endpoint.port, endpoint.path};
    Redirect(ValueOf(variables, endpoint.base_url), &host);
    if (!host.host.empty()) hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace

std::vector<std::string> ProviderNames(const Request& request) {
  std::vector<std::string> names;
  for (const ProviderBinding& binding : request.providers) names.push_back(binding.name);
  return names;
}

agent::Pairs ForeseenVariables(const Request& request) {
  agent::Pairs variables;
  for (const SecretBinding& binding : request.secrets) variables.emplace_back(binding.name, "");
  for (const ProviderBinding& binding : request.providers) {
    Result<gateway::Provider> provider = gateway::FindProvider(binding.name);
    if (!provider.ok()) continue;
    for (const gateway::ProviderEndpoint& endpoint : provider.value().endpoints) {
      if (endpoint.base_url.empty()) continue;
      std::optional<std::string> url = sys::Environment(endpoint.base_url);
      if (url.has_value()) variables.emplace_back(endpoint.base_url, *url);
    }
  }
  variables.insert(variables.end(), request.env.begin(), request.env.end());
  return variables;
}

agent::Pairs AssumedVariables(const agent::AgentDescription* agent,
                              const std::vector<std::string>& providers, agent::Pairs foreseen) {
  if (agent == nullptr || agent->models.empty()) return foreseen;
  const agent::ModelAccess* access = agent::ChooseAccess(*agent, providers, foreseen);
  if (access == nullptr) access = &agent->models.front();
  const auto is_key = [&](const auto& variable) {
    return std::find(access->keys.begin(), access->keys.end(), variable.first) !=
           access->keys.end();
  };
  const auto known = std::find_if(foreseen.begin(), foreseen.end(), is_key);
  const std::string key = known == foreseen.end() ? access->keys.front() : known->first;
  std::erase_if(foreseen, is_key);
  foreseen.emplace_back(key, gateway::PlaceholderFor(key));
  return foreseen;
}

std::vector<policy::ModelHost> ModelHostsOf(const agent::AgentDescription* agent,
                                            const Request& request) {
  if (agent == nullptr || agent->models.empty()) return {};
  const agent::Pairs variables = ForeseenVariables(request);
  const agent::ModelAccess* access = agent::ChooseAccess(*agent, ProviderNames(request), variables);
  if (access == nullptr) access = &agent->models.front();
  return HostsOfProvider(access->provider, variables);
}

void CloseWrites(const Request& request, policy::Policy* policy) {
  std::vector<policy::ModelHost> models;
  for (const std::string& name : ProviderNames(request)) {
    for (policy::ModelHost& host : HostsOfProvider(name, ForeseenVariables(request))) {
      models.push_back(std::move(host));
    }
  }
  auto is_model = [&](const policy::Endpoint& endpoint) {
    return std::any_of(models.begin(), models.end(), [&](const policy::ModelHost& model) {
      return model.host == endpoint.host && model.path == endpoint.path &&
             endpoint.ports == std::vector<uint16_t>{model.port};
    });
  };
  for (policy::NetworkPolicy& network : policy->network) {
    std::erase_if(network.endpoints, [&](policy::Endpoint& endpoint) {
      return !is_model(endpoint) && !policy::KeepReading(&endpoint);
    });
  }
}

std::vector<policy::ModelHost> ModelHostsOfAgent(const std::string& agent_name) {
  Result<agent::AgentDescription> agent = agent::FindAgentDescription(agent_name);
  return ModelHostsOf(agent.ok() ? &agent.value() : nullptr, Request());
}

}  // namespace run
