// SPDX-License-Identifier: Apache-2.0
// Plans the budget of a run, and checks before anything starts whether it can be enforced.
#pragma once

#include <functional>
#include <vector>

#include "agent/description.h"
#include "base/result.h"
#include "gateway/budget/budget_limits.h"
#include "gateway/credential/bound_secret.h"
#include "run/policy_source.h"
#include "run/request.h"
#include "run/trusted/config.h"

namespace run {

// Plans the budget. The command line's values take precedence over the configuration's.
gateway::BudgetLimits PlanBudget(const Request& request, const Config& config);

// Returns a function that returns the servers that are known to be models': those that the run's
// providers and the request name, and the public APIs of every provider. It reads the descriptions
// of all providers. It keeps nothing of the secrets' values.
std::function<std::vector<gateway::ModelServer>()> ModelServers(
    const Request& request, const std::vector<gateway::BoundSecret>& secrets);

// Fails with kSetup when the cost is limited and a model that the request or the configuration
// names has no price: each of its requests would be refused. The hint is the line to add.
// `agent` (null: `command`) may have names of its own for models.
Status CheckPrices(const agent::AgentDescription* agent, const Request& request,
                   const Config& config, const gateway::BudgetLimits& limits);

// Fails with kInvalid and "file:line:col: error: what" when models' answers must be counted and an
// endpoint has `tls: skip`: nothing could be counted there.
Status CheckCountable(const LoadedPolicy& policy, const gateway::BudgetLimits& limits);

}  // namespace run
