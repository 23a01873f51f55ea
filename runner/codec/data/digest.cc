// SPDX-License-Identifier: Apache-2.0
#include "codec/data/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "base/result.h"
#include "codec/text/hex.h"

namespace codec {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string Hexadecimal(const Digest& digest) {
  return EncodeHex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  Digest digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return Hexadecimal(digest);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ENSURE(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void Sha256::Update(std::string_view bytes) {
  ENSURE(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() {
  Digest digest;
  ENSURE(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  ENSURE(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  return Hexadecimal(digest);
}

}  // namespace codec
