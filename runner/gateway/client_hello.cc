// SPDX-License-Identifier: Apache-2.0
#include "gateway/client_hello.h"

#include <openssl/ssl.h>

#include "base/ascii.h"
#include "codec/data/byte_reader.h"
#include "gateway/async/openssl_owner.h"

namespace gateway {
namespace {

// The findings of the callback.
struct Hello {
  bool complete = false;
  std::optional<std::string> server_name;  // nullopt if malformed.
};

// The list of names in the extension: one, of a host.
std::optional<std::string> NameIn(std::string_view extension) {
  constexpr uint64_t kHostName = 0;
  codec::ByteReader outer(extension);
  codec::ByteReader list(outer.TakePrefixed(2));
  bool is_host = list.TakeNumber(1) == kHostName;
  std::string_view name = list.TakePrefixed(2);
  bool one = is_host && outer.empty() && list.empty() && !outer.failed() && !list.failed();
  if (!one || name.empty()) return std::nullopt;
  return ascii::LowerCase(name);
}

// OpenSSL calls this once the ClientHello is whole, before it chooses anything.
int TakeHello(SSL* ssl, int*, void*) {
  auto* hello = static_cast<Hello*>(SSL_get_app_data(ssl));
  hello->complete = true;
  const unsigned char* bytes = nullptr;
  size_t size = 0;
  bool named = SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &size) == 1;
  hello->server_name = named ? NameIn({reinterpret_cast<const char*>(bytes), size}) : std::string();
  return SSL_CLIENT_HELLO_RETRY;  // The handshake ends here.
}

SSL_CTX* PeekingContext() {
  static const SslContextOwner kContext = [] {
    SslContextOwner context(SSL_CTX_new(TLS_server_method()));
    if (context != nullptr) SSL_CTX_set_client_hello_cb(context.get(), TakeHello, nullptr);
    return context;
  }();
  return kContext.get();
}

}  // namespace

Result<std::optional<std::string>> PeekServerName(std::string_view bytes) {
  // OpenSSL takes that one, too. It has no place for a name.
  if (!bytes.empty() && (bytes[0] & 0x80) != 0) return Invalid("a ClientHello of SSL 2.0's form");
  SslOwner ssl(PeekingContext() == nullptr ? nullptr : SSL_new(PeekingContext()));
  BioOwner in(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
  BioOwner out(BIO_new(BIO_s_null()));
  if (!ssl || !in || !out) return SslFailed("reading a ClientHello");
  BIO_set_mem_eof_return(in.get(), -1);  // More may come.
  SSL_set_bio(ssl.get(), in.release(), out.release());
  Hello hello;
  SSL_set_app_data(ssl.get(), &hello);
  int accepted = SSL_accept(ssl.get());
  if (!hello.complete && SSL_get_error(ssl.get(), accepted) == SSL_ERROR_WANT_READ) {
    if (bytes.size() >= kClientHelloBytesMax) return Invalid("a ClientHello beyond 16 KiB");
    return std::optional<std::string>();
  }
  if (!hello.complete) return Invalid("a malformed ClientHello: " + TakeSslError());
  if (!hello.server_name.has_value()) return Invalid("a malformed server name in the ClientHello");
  return std::move(hello.server_name);
}

}  // namespace gateway
