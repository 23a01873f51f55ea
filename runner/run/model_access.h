// SPDX-License-Identifier: Apache-2.0
// Finds where a run's agent reaches its model, as far as that is known before any credential is
// read.
#pragma once

#include <string>
#include <vector>

#include "agent/description.h"
#include "policy/load/parse.h"
#include "run/request.h"

namespace run {

// Returns the names of the providers that the run has.
std::vector<std::string> ProviderNames(const Request& request);

// Returns the agent's variables that the request decides: of credentials the names alone, of
// addresses the values too.
agent::Pairs ForeseenVariables(const Request& request);

// Returns the variables of `agent` (null: `command`) in a sandbox that was made by another command,
// with these providers and ForeseenVariables(): with a placeholder for the model's credential, of
// the first provider that has one, or else of the agent's first.
agent::Pairs AssumedVariables(const agent::AgentDescription* agent,
                              const std::vector<std::string>& providers, agent::Pairs foreseen);

// Returns the hosts of the model of `agent` (null: `command`) in this run: of the provider that it
// has, of the variable that leads elsewhere, or else of the agent's first.
std::vector<policy::ModelHost> ModelHostsOf(const agent::AgentDescription* agent,
                                            const Request& request);
// Returns the same for a built-in agent without a run; empty for an unknown one.
std::vector<policy::ModelHost> ModelHostsOfAgent(const std::string& agent_name);

// Leaves of `policy` what reads (policy::KeepReading), apart from the endpoints that are exactly
// those of the request's providers.
void CloseWrites(const Request& request, policy::Policy* policy);

}  // namespace run
