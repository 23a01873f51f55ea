// SPDX-License-Identifier: Apache-2.0
#include "run/budget.h"

#include <string>
#include <utility>
#include <vector>

#include "agent/harness.h"
#include "codec/data/yaml.h"
#include "gateway/budget/price_list.h"
#include "gateway/credential/provider.h"

namespace run {
namespace {

// Adds the public APIs of every provider that are models'.
std::vector<gateway::ModelServer> WithPublicApis(std::vector<gateway::ModelServer> servers) {
  for (const std::string& name : gateway::ProviderNames()) {
    Result<gateway::Provider> provider = gateway::FindProvider(name);
    if (!provider.ok() || !provider.value().bodies_pass) continue;
    for (const gateway::ProviderEndpoint& endpoint : provider.value().endpoints) {
      if (!endpoint.host.empty()) servers.push_back({endpoint.host, endpoint.port, endpoint.path});
    }
  }
  return servers;
}

}  // namespace

gateway::BudgetLimits PlanBudget(const Request& request, const Config& config) {
  gateway::BudgetLimits limits;
  limits.tokens = request.max_tokens > 0 ? request.max_tokens : config.max_tokens;
  limits.cost_usd = request.max_cost_usd > 0 ? request.max_cost_usd : config.max_cost_usd;
  limits.requests = request.max_requests > 0 ? request.max_requests : config.max_requests;
  limits.requests_per_minute = config.requests_per_minute;
  limits.models = config.models;
  limits.watched_texts = request.watched_texts;
  return limits;
}

std::function<std::vector<gateway::ModelServer>()> ModelServers(
    const Request& request, const std::vector<gateway::BoundSecret>& secrets) {
  std::vector<gateway::ModelServer> named;
  if (!request.model_host.empty()) named.push_back({request.model_host, request.model_port, ""});
  for (const gateway::BoundSecret& secret : secrets) {
    if (secret.bodies_pass) named.push_back({secret.host, secret.port, secret.path});
  }
  return [named = std::move(named)] { return WithPublicApis(named); };
}

Status CheckPrices(const agent::AgentDescription* agent, const Request& request,
                   const Config& config, const gateway::BudgetLimits& limits) {
  if (limits.cost_usd <= 0) return Ok();
  std::vector<std::string> models = config.models;
  if (agent == nullptr || !agent::IsModelAlias(*agent, request.model)) {
    models.push_back(request.model);
  }
  gateway::PriceList prices = gateway::PriceList::BuiltIn();
  prices.Prefer(config.prices);
  for (const std::string& model : models) {
    if (model.empty() || prices.Find(model) != nullptr) continue;
    return Error{Code::kSetup,
                 "the price of the model '" + model + "' is unknown, and this run has a cost limit",
                 "in " + std::string(kConfigPath) + ": " + gateway::PriceLine(model)};
  }
  return Ok();
}

Status CheckCountable(const LoadedPolicy& policy, const gateway::BudgetLimits& limits) {
  if (!limits.any()) return Ok();
  for (const policy::NetworkPolicy& network : policy.parsed.policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      if (endpoint.tls != policy::TlsMode::kSkip) continue;
      return codec::InvalidAt(
          policy.file, endpoint.at,
          "the use of models behind 'tls: skip' cannot be counted, and this run has a budget",
          "remove 'tls: skip', or the run's limits of tokens, cost, requests and models");
    }
  }
  return Ok();
}

}  // namespace run
