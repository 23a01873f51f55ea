// SPDX-License-Identifier: Apache-2.0
#include "forge/open/token.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace forge {
namespace {

constexpr std::chrono::seconds kRevocationTime{10};

std::string Read(const EnvironmentReader& environment, const char* name) {
  return environment(name).value_or("");
}

Result<Secret> ReadToken(const EnvironmentReader& environment, const Facts& facts,
                         const std::string& hint) {
  SecretString token = Read(environment, facts.token);
  if (!token.empty()) return Secret(token);
  std::string what = std::string(facts.token) + " is not set";
  if (!Read(environment, facts.weak_token).empty()) {
    what += ", and " + std::string(facts.weak_token) + " may not post: the findings are in " +
            std::string(facts.findings_elsewhere);
  }
  return Error{Code::kSetup, what, hint};
}

}  // namespace

Result<PostingToken> TakePostingToken(const EnvironmentReader& environment, const Facts& facts,
                                      const ClientOptions& options, const std::string& repository,
                                      const std::vector<std::string>& permissions,
                                      Deadline deadline) {
  AppKey key;
  key.id = Read(environment, kAppIdVariable);
  const SecretString pem = Read(environment, kAppKeyVariable);
  if (key.id.empty() && pem.empty()) {
    return PostingToken{TRY(ReadToken(environment, facts, options.token_hint))};
  }
  if (key.id.empty() || pem.empty()) {
    const char* missing = key.id.empty() ? kAppIdVariable : kAppKeyVariable;
    return Error{Code::kSetup, std::string(missing) + " is not set, and the other one is",
                 std::string("export ") + missing + "=..."};
  }
  if (facts.app_token == nullptr) {
    return Error{Code::kSetup,
                 std::string(facts.can.names) + " has no applications that could post",
                 std::string("unset ") + kAppIdVariable + " " + kAppKeyVariable};
  }
  key.pem = Secret(pem);
  return PostingToken{TRY(facts.app_token(options, repository, key, permissions, deadline)), true};
}

Revocation::~Revocation() {
  if (client_ == nullptr) return;
  Status revoked = facts_.revoke(*client_, Deadline::After(kRevocationTime));
  if (revoked.ok()) return;
  logging::Warn("the application's token lasts an hour", {{"why", revoked.error().what}});
}

}  // namespace forge
