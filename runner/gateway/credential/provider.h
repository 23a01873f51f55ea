// SPDX-License-Identifier: Apache-2.0
// Providers: services for which the gateway knows where the credential goes, one data file each in
// policies/providers/ (documented there). The supervisor turns a provider into bound secrets; none
// of this runs in the gateway's process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gateway/credential/bound_secret.h"
#include "gateway/credential/google_credentials.h"
#include "gateway/credential/provider_identity.h"

namespace gateway {

// The form of a value in a request. If `header` is empty, the value goes only where a placeholder
// stands.
struct HeaderForm {
  std::string header;  // Lower case.
  std::string scheme;
  std::string user;  // The user of Basic.
};

struct ProviderCredential {
  std::string name;                   // The name in the placeholder.
  std::vector<std::string> from;      // The host's variables; the first that is set has the value.
  std::vector<std::string> shown_as;  // The agent's variables that hold the placeholder.
  HeaderForm form;
  bool google = false;  // The value is a credential file of Google's, exchanged for tokens.
};

struct ProviderEndpoint {
  std::string host;  // Lower case, or a pattern; empty if `base_url` has it.
  uint16_t port = 443;
  std::string path;      // A path selector; empty for every path.
  std::string base_url;  // The host's variable that, when set, has another address; or empty.
  std::optional<HeaderForm> form;  // In place of the credential's own.
};

struct Provider {
  std::string name;
  std::string about;
  std::vector<ProviderCredential> credentials;  // At least one.
  std::vector<ProviderEndpoint> endpoints;      // At least one.
  std::vector<std::string> replaced_headers;    // The client's own, taken out.
  std::vector<std::string> replaced_query;
  std::string signing_service;  // AWS: for the credentials that have no header.
  bool bodies_pass = false;
  std::vector<std::pair<std::string, std::string>> environment;  // For the agent.
  std::vector<std::string> passed;  // The host's variables that the agent sees as they are.
  std::optional<ProviderIdentity> identity;
};

// Reads one file. Fails with kInvalid and "file:line:col: error: what" and a hint.
Result<Provider> ParseProvider(std::string_view text, const std::string& file);

// Returns the built-in provider of that name. Fails with kNotFound and the nearest or the list.
Result<Provider> FindProvider(std::string_view name);
std::vector<std::string> ProviderNames();

// The lookups that the supervisor makes for planning, so that planning stays pure.
struct ProviderHost {
  std::function<std::optional<std::string>(const std::string& variable)> variable;
  // Returns an empty Secret if `variable` is not set.
  std::function<Secret(const std::string& variable)> secret;
  FileReader read;
};

// The secrets, grants and environment that one provider gives one run.
struct ProviderPlan {
  std::vector<BoundSecret> secrets;
  std::vector<TokenGrant> grants;  // BoundSecret::grant counts from `first_grant`.
  std::vector<std::pair<std::string, std::string>> environment;  // For the agent; no secret in it.
};

// Plans a provider. `variable` replaces the first credential's variable; if it is empty, the file's
// holds. With values in `identity`, the job's identity is exchanged in place of any credential.
// Fails with kSetup, and what to export, if no credential has a value, or if an address is missing
// or is not https; and as PlanIdentity().
Result<ProviderPlan> PlanProvider(const Provider& provider, const std::string& variable,
                                  const IdentityValues& identity, const ProviderHost& host,
                                  int first_grant);

}  // namespace gateway
