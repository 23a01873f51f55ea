// SPDX-License-Identifier: Apache-2.0
// `identity:` of a provider's file (policies/providers/): how a job's identity becomes a credential
// of that service.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "gateway/credential/bound_secret.h"

namespace gateway {

struct ProviderHost;

// One key of the configuration: `federation_rule: fdrl_...`.
struct IdentityKey {
  std::string name;
  std::string about;
  std::string pattern;   // The form of its value, for messages; may be empty.
  std::string fallback;  // Where it is not given; without one it is required, unless `optional`.
  bool optional = false;
};

struct IdentityStep {
  ExchangeStep request;      // ${KEY} stands in any of its texts.
  std::string if_given;      // Not empty: the step is left out unless this key has a value.
  std::string unless_given;  // Not empty: the step is left out if this key has a value.
};

struct ProviderIdentity {
  // The credentials that the result is in place of, by name: one, or the three of AWS.
  std::vector<std::string> credentials;
  std::string header;  // In place of that credential's own; with `scheme`.
  std::string scheme;
  std::vector<std::pair<std::string, std::string>> added_headers;
  std::vector<IdentityKey> keys;
  std::string audience;  // ${KEY} stands in it; the key `audience` replaces it.
  std::vector<IdentityStep> steps;
  bool once = false;
  bool gives_aws = false;
};

// The keys of every provider: `audience`, and where the token is, if the job's system is not asked.
inline constexpr std::string_view kIdentityAudience = "audience";
inline constexpr std::string_view kIdentityVariable = "token_variable";
inline constexpr std::string_view kIdentityFile = "token_file";

using IdentityValues = std::vector<std::pair<std::string, std::string>>;

// Reads `identity:` of a provider's file. Fails with kInvalid and "file:line:col: error: what".
Result<ProviderIdentity> ParseProviderIdentity(const std::string& file,
                                               const codec::YamlNode& node);

// Returns "KEY: FORM" for each key that has no default, for a person to fill in.
std::vector<std::string> IdentityForm(const ProviderIdentity& identity);

// Checks the values that a configuration or an option gives. Fails with kInvalid and what is wrong:
// a key that is not known, one that is missing, or a value that cannot be one.
Status CheckIdentity(const std::string& provider, const ProviderIdentity& identity,
                     const IdentityValues& values);

// Returns the grant that exchanges the job's identity, which `values` describe. The token comes
// from `token_file`, `token_variable`, or the job's system: GitHub and Forgejo are asked for one,
// of GitLab it is in PROVIDER_ID_TOKEN. Fails as CheckIdentity(), and with kSetup and what to add
// to the job where there is no token.
Result<TokenGrant> PlanIdentity(const std::string& provider, const ProviderIdentity& identity,
                                const IdentityValues& values, const ProviderHost& host);

// A file that this machine's system writes, and the audience that the token in it must have.
struct TokenFile {
  std::string path;
  std::string audience;
};

// Returns the file of `token_file`; nullopt where the values have none. Pure.
std::optional<TokenFile> TokenFileOf(const ProviderIdentity& identity,
                                     const IdentityValues& values);

// The variables of the host in which a token is, or the right to ask for one.
std::vector<std::string> IdentityVariables(const std::string& provider,
                                           const IdentityValues& values);

}  // namespace gateway
