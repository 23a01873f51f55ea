// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codec/wire/http_target.h"
#include "gateway/credential/provider.h"
#include "policy/model/destination.h"

namespace gateway {
namespace {

// A credential that this host has a value for.
struct Found {
  const ProviderCredential* credential = nullptr;
  Secret value;
  int grant = -1;
  size_t part = 0;  // Of what the grant gives.
};

// Names `from` as a person would: "A or B".
std::string Alternatives(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out.append(out.empty() ? "" : " or ").append(name);
  return out;
}

Result<std::vector<Found>> FindValues(const Provider& provider, const std::string& variable,
                                      const ProviderHost& host) {
  std::vector<Found> found;
  for (const ProviderCredential& credential : provider.credentials) {
    std::vector<std::string> from = credential.from;
    bool first = &credential == &provider.credentials.front();
    if (first && !variable.empty()) from = {variable};
    for (const std::string& name : from) {
      Secret value = host.secret(name);
      if (value.empty()) continue;
      found.push_back({&credential, std::move(value)});
      break;
    }
  }
  if (!found.empty()) return found;
  const ProviderCredential& wanted = provider.credentials.front();
  std::string names = variable.empty() ? Alternatives(wanted.from) : variable;
  return Error{Code::kSetup,
               "the provider " + provider.name + " has no credential: " + names + " is not set",
               "export " + (variable.empty() ? wanted.from.front() : variable) + "=..."};
}

// The credentials that the job's identity is exchanged for.
Result<std::vector<Found>> FindIdentity(const Provider& provider, const IdentityValues& values,
                                        const ProviderHost& host, int grant, ProviderPlan* plan) {
  if (!provider.identity) {
    return Error{Code::kInvalid, "the provider " + provider.name + " takes no identity of a job",
                 ""};
  }
  plan->grants.push_back(TRY(PlanIdentity(provider.name, *provider.identity, values, host)));
  std::vector<Found> found;
  for (const std::string& name : provider.identity->credentials) {
    auto credential = std::find_if(provider.credentials.begin(), provider.credentials.end(),
                                   [&](const auto& one) { return one.name == name; });
    ENSURE(credential != provider.credentials.end());  // ParseProvider() has looked.
    found.push_back({&*credential, Secret(), grant, found.size()});
  }
  return found;
}

// A credential file of Google's: itself, or its path.
Result<TokenGrant> ReadGrant(const Secret& value, const FileReader& read) {
  if (!value.reveal().starts_with('/')) return ParseGoogleCredentials(value.reveal(), read);
  Secret text(TRY(read(std::string(value.reveal()))));
  return ParseGoogleCredentials(text.reveal(), read);
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

// The endpoint as this host has it: its base URL may lead elsewhere.
Result<ProviderEndpoint> Locate(const Provider& provider, const ProviderEndpoint& endpoint,
                                const ProviderHost& host) {
  std::optional<std::string> url;
  if (!endpoint.base_url.empty()) url = host.variable(endpoint.base_url);
  if (!url.has_value() || url->empty()) {
    if (!endpoint.host.empty()) return endpoint;
    return Error{
        Code::kSetup,
        "the provider " + provider.name + " has no address: " + endpoint.base_url + " is not set",
        "export " + endpoint.base_url + "=https://..."};
  }
  Result<codec::RequestUrl> parsed = codec::ParseRequestUrl(*url);
  // Plain HTTP goes to this machine alone; a policy names it by its alias.
  bool alias = parsed.ok() && policy::IsHostAlias(parsed.value().host);
  if (parsed.ok() && parsed.value().scheme == "http" && IsLoopback(parsed.value().host)) {
    return Error{Code::kSetup,
                 endpoint.base_url + " names the loopback, where the sandbox has its own",
                 "export " + endpoint.base_url + "=http://host.openshell.internal:" +
                     std::to_string(parsed.value().port) + parsed.value().target};
  }
  bool good = parsed.ok() && (parsed.value().scheme == "https" || alias);
  if (!good) {
    return Error{Code::kSetup, endpoint.base_url + " is not an https URL",
                 "export " + endpoint.base_url + "=https://..."};
  }
  ProviderEndpoint there = endpoint;
  there.host = parsed.value().host;
  there.port = parsed.value().port;
  std::string path = parsed.value().target.substr(0, parsed.value().target.find('?'));
  while (!path.empty() && path.back() == '/') path.pop_back();
  if (!path.empty()) there.path = path + "/**";
  return there;
}

// `identity` is null for a credential of another kind.
BoundSecret Bind(const Provider& provider, const ProviderEndpoint& endpoint, const Found& found,
                 bool signs, const ProviderIdentity* identity) {
  BoundSecret secret{found.credential->name, endpoint.host, Secret(found.value.reveal()),
                     endpoint.port,          endpoint.path, {}};
  HeaderForm form = found.credential->form;
  if (!form.header.empty() && endpoint.form.has_value()) form = *endpoint.form;
  if (identity != nullptr && !identity->header.empty()) {
    form = {identity->header, identity->scheme, ""};
  }
  secret.placement.header = form.header;
  secret.placement.scheme = form.scheme;
  secret.placement.user = form.user;
  secret.placement.replaced_headers = provider.replaced_headers;
  secret.placement.replaced_query = provider.replaced_query;
  if (identity != nullptr) secret.placement.added_headers = identity->added_headers;
  if (signs) secret.placement.signing_service = provider.signing_service;
  secret.grant = found.grant;
  secret.part = found.part;
  secret.bodies_pass = provider.bodies_pass;
  if (found.grant >= 0) secret.value = Secret();
  return secret;
}

}  // namespace

Result<ProviderPlan> PlanProvider(const Provider& provider, const std::string& variable,
                                  const IdentityValues& identity, const ProviderHost& host,
                                  int first_grant) {
  ProviderPlan plan;
  const bool exchanges = !identity.empty();
  std::vector<Found> found = exchanges
                                 ? TRY(FindIdentity(provider, identity, host, first_grant, &plan))
                                 : TRY(FindValues(provider, variable, host));
  bool placed = false;
  for (Found& one : found) {
    placed |= !one.credential->form.header.empty();
    for (const std::string& name : one.credential->shown_as) {
      plan.environment.emplace_back(name, PlaceholderFor(one.credential->name));
    }
    if (!one.credential->google || exchanges) continue;
    plan.grants.push_back(TRY(ReadGrant(one.value, host.read)));
    one.grant = first_grant + static_cast<int>(plan.grants.size()) - 1;
  }
  for (const ProviderEndpoint& endpoint : provider.endpoints) {
    ProviderEndpoint there = TRY(Locate(provider, endpoint, host));
    for (const Found& one : found) {
      // A header that is there already needs no signature beside it.
      bool signs = !placed && !provider.signing_service.empty();
      plan.secrets.push_back(
          Bind(provider, there, one, signs, exchanges ? &*provider.identity : nullptr));
    }
    std::optional<std::string> url;
    if (!endpoint.base_url.empty()) url = host.variable(endpoint.base_url);
    if (url.has_value() && !url->empty()) plan.environment.emplace_back(endpoint.base_url, *url);
  }
  for (const auto& variable_and_text : provider.environment) {
    plan.environment.push_back(variable_and_text);
  }
  for (const std::string& name : provider.passed) {
    std::optional<std::string> value = host.variable(name);
    if (value.has_value()) plan.environment.emplace_back(name, *value);
  }
  return plan;
}

}  // namespace gateway
