// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's objects: freed by the function that belongs to the type.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/free_with.h"
#include "base/result.h"

namespace gateway {

using SslOwner = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContextOwner = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using SslSessionOwner = std::unique_ptr<SSL_SESSION, FreeWith<SSL_SESSION_free>>;
using KeyOwner = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using CertificateOwner = std::unique_ptr<X509, FreeWith<X509_free>>;
using ExtensionOwner = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using BioOwner = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;

// The oldest entry of this thread's error queue in words, and empties the queue.
std::string TakeSslError();
// What OpenSSL did not do for us, with that.
Error SslFailed(std::string_view doing);

}  // namespace gateway
