// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's objects for signatures, and views of bytes in the types OpenSSL expects.
#pragma once

#include <openssl/ts.h>
#include <openssl/x509v3.h>

#include <string>
#include <string_view>

#include "base/openssl_owner.h"
#include "base/result.h"

namespace sigstore {

using KeyContextOwner = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;
using StoreOwner = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using StoreContextOwner = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;
using NamesOwner = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
using OctetsOwner = std::unique_ptr<ASN1_OCTET_STRING, FreeWith<ASN1_OCTET_STRING_free>>;
using UsesOwner = std::unique_ptr<EXTENDED_KEY_USAGE, FreeWith<EXTENDED_KEY_USAGE_free>>;
using TimestampResponseOwner = std::unique_ptr<TS_RESP, FreeWith<TS_RESP_free>>;
using TimestampContextOwner = std::unique_ptr<TS_VERIFY_CTX, FreeWith<TS_VERIFY_CTX_free>>;

// Borrows its elements.
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using BorrowedStack = std::unique_ptr<STACK_OF(X509), FreeStack>;

inline const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns the content of any ASN.1 string type, as bytes; borrowed.
inline std::string_view Content(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(string)),
          static_cast<size_t>(::ASN1_STRING_length(string))};
}

// Takes over what an i2d function has allocated; `size` is the function's result, at least 1.
inline std::string TakeDer(unsigned char* der, int size) {
  ENSURE(size > 0);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  ::OPENSSL_free(der);
  return bytes;
}

// Returns what was written to a BIO in memory.
inline std::string TextOf(BIO* bio) {
  char* text = nullptr;
  const long size = ::BIO_get_mem_data(bio, &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace sigstore
