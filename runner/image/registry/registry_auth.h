// SPDX-License-Identifier: Apache-2.0
// Authentication with a registry: Basic, or a token from its token service (distribution-spec,
// "auth").
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "image/registry/challenge.h"
#include "image/registry/credential.h"
#include "image/registry/registry_address.h"
#include "net/http_client.h"
#include "net/retry.h"

namespace image {

// The authorization for one repository, kept until the registry no longer takes it. For use from
// several threads: one of them renews, the others wait for it.
class RegistryAuth {
 public:
  // Called at most once, when the registry first asks who we are.
  using CredentialFinder = std::function<CredentialSearch()>;

  RegistryAuth(RegistryAddress address, CredentialFinder find, net::RetryPolicy retries)
      : address_(std::move(address)), find_(std::move(find)), retries_(retries) {}

  struct Authorization {
    Secret bearer;
    Secret basic;        // Base64 of "user:password".
    int generation = 0;  // 0 if there is none yet.
  };
  // Returns what to send with the next request; empty at first.
  Authorization Current();

  // Renews the authorization after a 401 with `challenges` to a request that carried `generation`.
  // Bearer is preferred. Fails with kSetup if there is no credential, with kRefused if there is one
  // that is not accepted or the registry asks for a scheme that is not supported, with kTemporary
  // if the token service did not answer.
  Result<Authorization> Renew(const std::vector<Challenge>& challenges, int generation,
                              net::HttpClient& client, Deadline deadline);

  // For errors, returns whether there is no credential, and why there may be none.
  bool anonymous();
  std::string Complaints();

 private:
  const CredentialSearch& Find();
  Result<Secret> FetchToken(const Challenge& challenge, net::HttpClient& client, Deadline deadline);
  Error Denied(const std::string& what);

  const RegistryAddress address_;
  const CredentialFinder find_;
  const net::RetryPolicy retries_;

  std::mutex mutex_;  // Guards everything below.
  bool searched_ = false;
  CredentialSearch search_;
  Authorization current_;
};

}  // namespace image
