// SPDX-License-Identifier: Apache-2.0
// A client for one repository of a registry: authentication, redirects, manifests and blobs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "image/registry/registry_address.h"
#include "image/registry/registry_auth.h"
#include "image/source/source.h"
#include "net/http_client.h"
#include "net/retry.h"

namespace image {

struct RegistryRequest {
  std::string url;
  std::string accept;
  int64_t offset = 0;  // Above 0: only what comes from there on (Range).
};

// One repository of one registry: authenticates, follows redirects. For use from several threads;
// each request borrows a connection pool of its own.
class RegistryClient {
 public:
  RegistryClient(RegistryAddress address, RegistryAuth::CredentialFinder find,
                 net::RetryPolicy retries, net::HttpClientOptions options)
      : address_(address),
        retries_(retries),
        options_(std::move(options)),
        auth_(std::move(address), std::move(find), retries) {}

  const RegistryAddress& address() const { return address_; }
  const net::RetryPolicy& retries() const { return retries_; }

  // Makes one attempt. Any status is a success; bodies of 2xx go to `sink`, those of others are in
  // the answer, cut at 64 KiB. Fails as HttpClient::Send, RegistryAuth::Renew and SendFollowing do.
  Result<net::HttpResponse> Get(const RegistryRequest& request, const net::BodySink& sink,
                                Deadline deadline);

  // Returns the error for an unsuccessful answer: kNotFound (404), kSetup or kRefused (401, 403),
  // kTemporary (429, 5xx), else kInvalid; with what the registry says and what helps. `what` was
  // asked for: "manifest 12".
  Error Explain(const net::HttpResponse& response, const std::string& what);

 private:
  class Lease;

  const RegistryAddress address_;
  const net::RetryPolicy retries_;
  const net::HttpClientOptions options_;
  RegistryAuth auth_;
  std::mutex mutex_;  // Guards idle_.
  std::vector<net::HttpClient> idle_;
};

}  // namespace image
