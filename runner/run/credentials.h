// SPDX-License-Identifier: Apache-2.0
// What a run's credentials are, from `--secret` and `--provider` and this process's environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gateway/gateway.h"
#include "run/request.h"
#include "run/trust.h"

namespace run {

struct RunCredentials {
  std::vector<gateway::BoundSecret> secrets;
  std::vector<gateway::TokenGrant> grants;
  // The agent's variables: placeholders, and what a provider's clients must be told.
  std::vector<std::pair<std::string, std::string>> environment;
  // Files that held a credential: nothing of them is for the sandbox.
  std::vector<std::string> files;
};

// Reads the values, which are gone from the environment afterwards (paths stay). kRefused for a run
// that is not trusted, kSetup with what to export when one has no value, kUsage for an unknown
// provider.
Result<RunCredentials> CollectCredentials(const Request& request, const Trust& trust);

// The variables of this process that hold, or may hold, a value of `request`'s credentials.
std::vector<std::string> CredentialVariables(const Request& request);

}  // namespace run
