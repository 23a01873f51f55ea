// SPDX-License-Identifier: Apache-2.0
// Owners of the OpenSSL objects that more than one room uses, each freed by the function that
// belongs to its type.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "base/free_with.h"

using BioOwner = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using CertificateOwner = std::unique_ptr<X509, FreeWith<X509_free>>;
using DigestContextOwner = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using KeyOwner = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
