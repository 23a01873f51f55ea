// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's objects for TLS.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>
#include <string_view>

#include "base/openssl_owner.h"
#include "base/result.h"

namespace gateway {

using SslOwner = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContextOwner = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using SslSessionOwner = std::unique_ptr<SSL_SESSION, FreeWith<SSL_SESSION_free>>;
using ExtensionOwner = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;

// Returns the oldest entry of this thread's error queue in words, and empties the queue.
std::string TakeSslError();
// Returns the error for a failed call to OpenSSL: `doing`, then the text of TakeSslError.
Error SslFailed(std::string_view doing);

}  // namespace gateway
