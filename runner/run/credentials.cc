// SPDX-License-Identifier: Apache-2.0
#include "run/credentials.h"

#include <string.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/yaml.h"
#include "gateway/credential/provider.h"
#include "policy/model/host_pattern.h"

namespace run {
namespace {

constexpr size_t kCredentialFileBytesMax = 65536;

// This process's environment: each value is removed from it once, and kept for later questions.
class Values {
 public:
  Secret Take(const std::string& variable) {
    auto [place, added] = taken_.try_emplace(variable);
    if (added) {
      // A path is not secret, and others need it: the file is hidden from the sandbox.
      std::optional<std::string> path = sys::Environment(variable);
      bool is_path = path.has_value() && path->starts_with('/');
      place->second = is_path ? Secret(*path) : sys::EnvironmentSecret(variable);
      if (path.has_value()) Wipe(*path);
    }
    return Secret(place->second.reveal());
  }

 private:
  std::map<std::string, Secret> taken_;
};

// A secret that is bound to a model's host by hand counts as a model's, too.
bool IsModelHost(const std::string& host) {
  for (const std::string& name : gateway::ProviderNames()) {
    Result<gateway::Provider> provider = gateway::FindProvider(name);
    if (!provider.ok() || !provider.value().bodies_pass) continue;
    for (const gateway::ProviderEndpoint& endpoint : provider.value().endpoints) {
      if (!endpoint.host.empty() && policy::HostMatches(endpoint.host, host)) return true;
    }
  }
  return false;
}

void AddSecret(const SecretBinding& binding, Values& values, RunCredentials* credentials) {
  gateway::BoundSecret secret{binding.name, binding.host, values.Take(binding.variable)};
  secret.bodies_pass = IsModelHost(binding.host);
  credentials->secrets.push_back(std::move(secret));
  credentials->environment.emplace_back(binding.name, gateway::PlaceholderFor(binding.name));
}

bool IsSet(const std::string& variable) {
  std::optional<std::string> value = sys::Environment(variable);
  bool set = value.has_value() && !value->empty();
  if (value.has_value()) Wipe(*value);
  return set;
}

Status CheckProvider(const gateway::Provider& provider, const std::string& variable,
                     const gateway::IdentityValues& identity) {
  if (!identity.empty()) {
    // Whether there is one, without taking it yet.
    gateway::ProviderHost host;
    host.variable = sys::Environment;
    host.secret = [](const std::string& name) { return Secret(IsSet(name) ? "set" : ""); };
    host.read = [](const std::string& path) {
      return ReadRegularFile(path, kCredentialFileBytesMax);
    };
    TRY(gateway::PlanIdentity(provider.name, *provider.identity, identity, host));
    return Ok();
  }
  if (!variable.empty() && IsSet(variable)) return Ok();
  for (const gateway::ProviderCredential& credential : provider.credentials) {
    if (std::any_of(credential.from.begin(), credential.from.end(), IsSet)) return Ok();
  }
  // For a host that has nothing, the error says what is missing.
  gateway::ProviderHost nothing;
  nothing.secret = [](const std::string&) { return Secret(); };
  return gateway::PlanProvider(provider, variable, {}, nothing, 0).error();
}

Result<gateway::Provider> Find(const ProviderBinding& binding) {
  Result<gateway::Provider> provider = gateway::FindProvider(binding.name);
  if (provider.ok() || provider.error().code != Code::kNotFound) return provider;
  return Error{Code::kUsage, "--provider: " + provider.error().what, provider.error().hint};
}

Error BadBinding(const std::string& file, const policy::Endpoint& endpoint, const std::string& what,
                 const std::string& hint) {
  return codec::InvalidAt(file, endpoint.at, what, hint);
}

// The endpoints of `policy` that name a provider to be bound to them.
std::vector<const policy::Endpoint*> BoundEndpoints(const policy::Policy& policy) {
  std::vector<const policy::Endpoint*> bound;
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      if (!endpoint.credential_provider.empty()) bound.push_back(&endpoint);
    }
  }
  return bound;
}

// Binds the provider's credential to the endpoints whose `credential_binding` names it. As in
// OpenShell, only a provider without addresses of its own can be bound: it would otherwise go to
// both.
Status BindToPolicy(const policy::Policy& policy, const std::string& file,
                    gateway::Provider* provider) {
  std::vector<gateway::ProviderEndpoint> endpoints;
  for (const policy::Endpoint* endpoint : BoundEndpoints(policy)) {
    if (endpoint->credential_provider != provider->name) continue;
    for (const gateway::ProviderEndpoint& own : provider->endpoints) {
      if (own.host.empty()) continue;
      return BadBinding(file, *endpoint,
                        "the provider '" + provider->name + "' defines its own addresses",
                        "remove 'credential_binding'");
    }
    if (endpoint->host.empty()) {
      return BadBinding(file, *endpoint, "a credential cannot be bound to any host",
                        "write 'host: NAME'");
    }
    for (uint16_t port : endpoint->ports) {
      gateway::ProviderEndpoint there;
      there.host = endpoint->host;
      there.port = port;
      there.path = endpoint->path;
      endpoints.push_back(std::move(there));
    }
  }
  if (!endpoints.empty()) provider->endpoints = std::move(endpoints);
  return Ok();
}

Status CheckAttached(const Request& request, const policy::Policy& policy,
                     const std::string& file) {
  for (const policy::Endpoint* endpoint : BoundEndpoints(policy)) {
    const std::string& name = endpoint->credential_provider;
    const std::vector<std::string>& held = request.gateway_providers;
    bool attached =
        std::any_of(request.providers.begin(), request.providers.end(),
                    [&](const ProviderBinding& binding) { return binding.name == name; }) ||
        std::find(held.begin(), held.end(), name) != held.end();
    if (attached) continue;
    Error error =
        BadBinding(file, *endpoint, "the provider '" + name + "' is not enabled for this run",
                   "--provider " + name);
    error.code = Code::kSetup;
    return error;
  }
  return Ok();
}

// A fork's run has one provider, a model's, and nothing else.
Status CheckModelAlone(const Request& request, const Trust& trust) {
  auto refused = [&](const std::string& what) {
    return Error{Code::kRefused, trust.reason + ": " + what};
  };
  if (!request.secrets.empty()) {
    return refused("the secret " + request.secrets.front().name + " is not for it");
  }
  if (!request.gateway_providers.empty()) {
    return refused("the provider " + request.gateway_providers.front() +
                   " of the gateway is not for it");
  }
  if (request.providers.size() > 1) return refused("it may have one provider, not several");
  gateway::Provider provider = TRY(Find(request.providers.front()));
  if (provider.bodies_pass) return Ok();
  return refused("the provider '" + provider.name + "' is not a model's");
}

Status AddProvider(gateway::Provider provider, const ProviderBinding& binding, Values& values,
                   RunCredentials* credentials) {
  gateway::ProviderHost host;
  host.variable = sys::Environment;
  host.secret = [&](const std::string& variable) { return values.Take(variable); };
  host.read = [&](const std::string& path) -> Result<std::string> {
    std::string text = TRY(ReadRegularFile(path, kCredentialFileBytesMax)
                               .Context("reading the credentials of " + provider.name));
    credentials->files.push_back(path);
    return text;
  };
  int first_grant = static_cast<int>(credentials->grants.size());
  gateway::ProviderPlan plan =
      TRY(gateway::PlanProvider(provider, binding.variable, binding.identity, host, first_grant));
  std::move(plan.secrets.begin(), plan.secrets.end(), std::back_inserter(credentials->secrets));
  for (const gateway::TokenGrant& grant : plan.grants) {
    credentials->subject_files.push_back(grant.subject_file);
  }
  std::move(plan.grants.begin(), plan.grants.end(), std::back_inserter(credentials->grants));
  std::move(plan.environment.begin(), plan.environment.end(),
            std::back_inserter(credentials->environment));
  return Ok();
}

}  // namespace

Status RefuseUntrusted(const Request& request, const Trust& trust) {
  const bool wanted =
      !request.secrets.empty() || !request.providers.empty() || !request.gateway_providers.empty();
  if (!wanted || trust.trusted) return Ok();
  if (trust.model) return CheckModelAlone(request, trust);
  return Error{Code::kRefused, trust.reason + ", and such runs get no secrets", trust.hint};
}

void TakeIdentities(const Config& config, Request* request) {
  for (ProviderBinding& binding : request->providers) {
    for (const auto& [name, values] : config.identities) {
      const bool own = !binding.variable.empty() || !binding.identity.empty();
      if (name == binding.name && !own) binding.identity = values;
    }
  }
}

Status CheckCredentials(const Request& request, const Trust& trust, const policy::Policy& policy,
                        const std::string& policy_file) {
  TRY(RefuseUntrusted(request, trust));
  // A run that gets no secrets goes without them.
  if (trust.trusted) TRY(CheckAttached(request, policy, policy_file));
  for (const SecretBinding& binding : request.secrets) {
    if (IsSet(binding.variable)) continue;
    return Error{
        Code::kSetup,
        "the secret " + binding.name + " has no value: " + binding.variable + " is not set",
        "export " + binding.variable + "=..."};
  }
  for (const ProviderBinding& binding : request.providers) {
    gateway::Provider provider = TRY(Find(binding));
    TRY(BindToPolicy(policy, policy_file, &provider));
    TRY(CheckProvider(provider, binding.variable, binding.identity));
  }
  return Ok();
}

Result<RunCredentials> CollectCredentials(const Request& request, const Trust& trust,
                                          const policy::Policy& policy,
                                          const std::string& policy_file) {
  TRY(CheckCredentials(request, trust, policy, policy_file));
  RunCredentials credentials;
  if (!request.attest_key.empty()) {
    credentials.files.push_back(TRY(sys::RealPath(request.attest_key)));
  }
  Values values;
  for (const SecretBinding& binding : request.secrets) AddSecret(binding, values, &credentials);
  for (const ProviderBinding& binding : request.providers) {
    gateway::Provider provider = TRY(Find(binding));
    TRY(BindToPolicy(policy, policy_file, &provider));
    TRY(AddProvider(std::move(provider), binding, values, &credentials));
  }
  return credentials;
}

std::vector<std::string> NamesOf(const RunCredentials& credentials) {
  std::vector<std::string> names;
  for (const gateway::BoundSecret& secret : credentials.secrets) {
    names.push_back(secret.name + "@" + secret.host);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::vector<KeptSecret>> KeepSecrets(const RunCredentials& credentials) {
  std::vector<std::pair<std::string, std::string_view>> values;
  for (const gateway::BoundSecret& secret : credentials.secrets) {
    values.emplace_back(secret.name, secret.value.reveal());
  }
  for (const gateway::TokenGrant& grant : credentials.grants) {
    for (const Secret* part : {&grant.key, &grant.client_secret, &grant.subject_auth}) {
      values.emplace_back(grant.identity, part->reveal());
    }
  }
  std::vector<KeptSecret> kept;
  for (const auto& [name, value] : values) {
    if (value.empty()) continue;
    kept.push_back({name, TRY(UnforkedBytes::Copy(value))});
  }
  return kept;
}

codec::SecretMask MaskOf(const std::vector<KeptSecret>& secrets) {
  codec::SecretMask mask;
  for (const KeptSecret& secret : secrets) {
    if (mask.Add(secret.value.reveal())) continue;
    logging::Warn(
        "a secret is too short to be masked",
        {{"name", secret.name}, {"bytes_min", std::to_string(codec::SecretMask::kValueBytesMin)}});
  }
  return mask;
}

std::vector<std::string> CredentialVariables(const Request& request) {
  std::vector<std::string> variables;
  for (const SecretBinding& binding : request.secrets) variables.push_back(binding.variable);
  for (const ProviderBinding& binding : request.providers) {
    if (!binding.variable.empty()) variables.push_back(binding.variable);
    if (!binding.identity.empty()) {
      for (std::string& name : gateway::IdentityVariables(binding.name, binding.identity)) {
        variables.push_back(std::move(name));
      }
    }
    Result<gateway::Provider> provider = Find(binding);
    if (!provider.ok()) continue;
    for (const gateway::ProviderCredential& credential : provider.value().credentials) {
      variables.insert(variables.end(), credential.from.begin(), credential.from.end());
    }
  }
  return variables;
}

std::vector<gateway::TokenFile> TokenFiles(const Request& request) {
  std::vector<gateway::TokenFile> files;
  for (const ProviderBinding& binding : request.providers) {
    Result<gateway::Provider> provider = Find(binding);
    if (!provider.ok() || !provider.value().identity) continue;
    if (auto file = gateway::TokenFileOf(*provider.value().identity, binding.identity)) {
      files.push_back(std::move(*file));
    }
  }
  return files;
}

Error ForJob(Error error) {
  constexpr std::string_view kExport = "export ";
  const size_t equals = error.hint.find("=...");
  if (!error.hint.starts_with(kExport) || equals == std::string::npos) return error;
  const std::string name = error.hint.substr(kExport.size(), equals - kExport.size());
  if (sys::Environment("GITHUB_ACTIONS") == "true") {
    error.hint = "env: { " + name + ": \"${{ secrets." + name + " }}\" }, and that secret";
  } else if (sys::Environment("GITLAB_CI") == "true") {
    error.hint = "a CI/CD variable " + name + " of the project, masked";
  }
  return error;
}

}  // namespace run
