// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "gateway/async/openssl_owner.h"

namespace gateway {

// The run's own certificate authority ("OpenShell Sandbox CA"): its key is made here, stays in this
// process and dies with it. Certificates for hosts are made when first asked for and kept.
class CertificateAuthority {
 public:
  static Result<CertificateAuthority> Create();

  // Returns one certificate, PEM.
  const std::string& pem() const { return pem_; }

  // Makes a new TLS server for `host` (a name of letters, digits, '-', '_' and '.', or an address
  // literal): its certificate names the host alone, it speaks TLS 1.2 and 1.3, and HTTP/2 or
  // HTTP/1.1 by ALPN.
  Result<SslOwner> NewServer(const std::string& host);

 private:
  CertificateAuthority() = default;
  Result<CertificateOwner> MakeLeaf(const std::string& host);
  Result<SSL_CTX*> ContextFor(const std::string& host);  // Borrowed from contexts_.

  std::string pem_;
  KeyOwner key_;
  CertificateOwner certificate_;
  KeyOwner leaf_key_;  // One for all hosts: they are all this process.
  std::map<std::string, SslContextOwner> contexts_;  // By host.
};

}  // namespace gateway
