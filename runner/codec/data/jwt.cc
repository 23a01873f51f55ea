// SPDX-License-Identifier: Apache-2.0
#include "codec/data/jwt.h"

#include <openssl/pem.h>

#include "base/openssl_owner.h"
#include "codec/text/base64.h"

namespace codec {

Result<std::string> SignJwt(std::string_view pem, const std::string& key_id, const Json& claims) {
  BioOwner bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // No passphrase, and never a prompt for one.
  auto no_passphrase = [](char*, int, int, void*) { return -1; };
  KeyOwner key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key || ::EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA) {
    return Error{Code::kInvalid, "is not an RSA key"};
  }
  Json header = Json::EmptyObject();
  header.Set("alg", "RS256").Set("typ", "JWT");
  if (!key_id.empty()) header.Set("kid", key_id);
  std::string token =
      EncodeBase64Url(RenderJsonLine(header)) + "." + EncodeBase64Url(RenderJsonLine(claims));
  DigestContextOwner context(::EVP_MD_CTX_new());
  std::string signature(static_cast<size_t>(::EVP_PKEY_get_size(key.get())), '\0');
  size_t size = signature.size();
  bool made =
      ::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) == 1 &&
      ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       reinterpret_cast<const unsigned char*>(token.data()), token.size()) == 1;
  if (!made) return Error{Code::kInvalid, "cannot sign"};
  signature.resize(size);
  return token + "." + EncodeBase64Url(signature);
}

}  // namespace codec
