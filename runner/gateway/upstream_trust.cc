// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdint>

#include "gateway/limits.h"
#include "policy/model/destination.h"

namespace gateway {
namespace {

// OpenSSL hands over a session that may be resumed: the slot that NewClient chose keeps it.
int KeepSession(SSL* ssl, SSL_SESSION* session) {
  auto* slot = static_cast<SslSessionOwner*>(SSL_get_app_data(ssl));
  if (slot == nullptr) return 0;
  slot->reset(session);
  return 1;  // Ours now.
}

// Adds the certificates of a PEM text to `store` (null: only counts), at most `most` of them. A
// certificate that cannot be read ends the reading.
size_t ReadCertificates(std::string_view pem, size_t most, X509_STORE* store) {
  BioOwner in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  size_t count = 0;
  while (count < most) {
    CertificateOwner certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    if (store == nullptr || X509_STORE_add_cert(store, certificate.get()) == 1) ++count;
  }
  ERR_clear_error();  // The end of the file is an error to PEM_read_bio_X509.
  return count;
}

}  // namespace

Result<UpstreamTrust> UpstreamTrust::Load(SharedText bundle_pem) {
  const std::string& bundle = bundle_pem.get();
  if (bundle.size() > kCaBundleBytesMax) {
    return Error{Code::kInvalid,
                 "the CA bundle is larger than " + std::to_string(kCaBundleBytesMax) + " bytes"};
  }
  UpstreamTrust trust;
  trust.context_.reset(SSL_CTX_new(TLS_client_method()));
  if (!trust.context_) return SslFailed("making a TLS client");
  SSL_CTX* context = trust.context_.get();
  if (!bundle.empty() && ReadCertificates(bundle, 1, nullptr) == 0) {
    return Error{Code::kInvalid, "the CA bundle contains no certificates"};
  }
  trust.bundle_pem_ = std::move(bundle_pem);
  static constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  bool made = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
              SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11) == 0;
  if (!made) return SslFailed("making a TLS client");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, KeepSession);
  return trust;
}

Result<SslOwner> UpstreamTrust::NewClient(const std::string& host, uint16_t port, bool http2) {
  if (!bundle_pem_.get().empty()) {
    ReadCertificates(bundle_pem_.get(), SIZE_MAX, SSL_CTX_get_cert_store(context_.get()));
    bundle_pem_ = SharedText();
  }
  SslOwner ssl(SSL_new(context_.get()));
  if (!ssl) return SslFailed("making a TLS client");
  bool named = false;
  if (policy::ParseAddress(host).has_value()) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) == 1;
  } else {
    // Only alternative names count (RFC 9110, 4.3.4): an authority need not check a common name.
    SSL_set_hostflags(ssl.get(),
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    named = SSL_set1_host(ssl.get(), host.c_str()) == 1 &&
            SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
  }
  if (!named) return SslFailed("naming a TLS peer");
  static constexpr unsigned char kBoth[] = "\x02h2\x08http/1.1";
  if (http2 && SSL_set_alpn_protos(ssl.get(), kBoth, sizeof kBoth - 1) != 0) {
    return SslFailed("offering HTTP/2");
  }
  std::string key = host + ":" + std::to_string(port);
  auto slot = sessions_.find(key);
  // A client keeps a pointer to its slot: beyond the bound there are no slots, none is ever
  // dropped.
  if (slot == sessions_.end() && sessions_.size() < kUpstreamSessionsMax) {
    slot = sessions_.emplace(key, nullptr).first;
  }
  if (slot != sessions_.end()) {
    SSL_set_app_data(ssl.get(), &slot->second);
    if (slot->second) SSL_set_session(ssl.get(), slot->second.get());
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

}  // namespace gateway
