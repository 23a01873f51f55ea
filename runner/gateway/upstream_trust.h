// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/shared_text.h"
#include "gateway/async/openssl_owner.h"

namespace gateway {

// TLS to upstream servers: the trusted authorities, and the sessions that make a second connection
// to a host cheaper.
class UpstreamTrust {
 public:
  // Trusts the certificates in `bundle_pem` and no others; with an empty bundle, nothing is
  // trusted. Fails with kInvalid when the bundle is not empty and holds no certificate.
  static Result<UpstreamTrust> Load(SharedText bundle_pem);

  // Makes a new TLS client that accepts only a certificate for `host` (a name or an address
  // literal) from a trusted issuer. It speaks HTTP/1.1 by ALPN, or with `http2` what the server
  // prefers of the two. This object must outlive it, at the address that it has now.
  Result<SslOwner> NewClient(const std::string& host, uint16_t port, bool http2 = false);

 private:
  UpstreamTrust() = default;

  SslContextOwner context_;
  // The certificates, which are not read at once: a hundred of them cost more than starting the
  // rest of a run, and many runs never open a TLS connection. Empty once they are in the context.
  SharedText bundle_pem_;
  // The sessions by "host:port"; never erased: see NewClient.
  std::map<std::string, SslSessionOwner> sessions_;
};

}  // namespace gateway
