// SPDX-License-Identifier: Apache-2.0
// A run's credentials, from `--secret`, `--provider` and this process's environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unforked_bytes.h"
#include "codec/data/secret_mask.h"
#include "gateway/credential/provider_identity.h"
#include "gateway/gateway.h"
#include "policy/model/policy.h"
#include "run/request.h"
#include "run/trusted/config.h"
#include "run/trusted/trust.h"

namespace run {

struct RunCredentials {
  std::vector<gateway::BoundSecret> secrets;
  std::vector<gateway::TokenGrant> grants;
  std::vector<std::string> subject_files;  // Of each grant; it is empty for most.
  // The agent's variables: placeholders, and what a provider's clients must be told.
  std::vector<std::pair<std::string, std::string>> environment;
  // Files that held a credential: nothing of them is for the sandbox.
  std::vector<std::string> files;
};

// Fails with kRefused and whose fault it is for a run that wants credentials and is not trusted, or
// wants more than its model's where it may have that alone.
Status RefuseUntrusted(const Request& request, const Trust& trust);

// Gives each provider of the request that has nothing of its own the identity that `config` has for
// it.
void TakeIdentities(const Config& config, Request* request);

// Checks whether the request's credentials can be had, before anything is read. Fails with kRefused
// for a run that is not trusted; with kSetup and what to export for a credential that no variable
// has, and what to attach when the policy binds a provider that is not attached; with kUsage for an
// unknown provider; and with kInvalid and "policy_file:line:col: error: what" for one that cannot
// be bound.
Status CheckCredentials(const Request& request, const Trust& trust, const policy::Policy& policy,
                        const std::string& policy_file);

// Checks, then reads the values, which are gone from the environment afterwards (paths stay). A
// provider goes where the policy's `credential_binding` names it, in place of an address of its
// own. Fails with kSetup for one that cannot be used, too.
Result<RunCredentials> CollectCredentials(const Request& request, const Trust& trust,
                                          const policy::Policy& policy,
                                          const std::string& policy_file);

// Returns the name and the host of each: "ANTHROPIC_API_KEY@api.anthropic.com".
std::vector<std::string> NamesOf(const RunCredentials& credentials);

// A value that the supervisor keeps while the agent runs, to mask it in what the agent says: where
// neither the gateway's process nor the sandbox's, which it starts meanwhile, can find it.
struct KeptSecret {
  std::string name;
  UnforkedBytes value;
};
// Copies everything in `credentials` that is secret. Fails as UnforkedBytes::Copy.
Result<std::vector<KeptSecret>> KeepSecrets(const RunCredentials& credentials);
// Returns the mask of these secrets; call it when no further process is started. Warns of values
// that are too short.
codec::SecretMask MaskOf(const std::vector<KeptSecret>& secrets);

// Returns the variables of this process that hold, or may hold, a value of `request`'s credentials.
std::vector<std::string> CredentialVariables(const Request& request);

// Returns the files that the identities of `request` are read from, whose values were checked.
std::vector<gateway::TokenFile> TokenFiles(const Request& request);

// Returns `error` with the hint that helps in a job, where `export KEY=...` cannot be typed: the
// credential is a secret of the repository or a variable of the project.
Error ForJob(Error error);

}  // namespace run
