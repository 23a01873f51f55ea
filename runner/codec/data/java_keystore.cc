// SPDX-License-Identifier: Apache-2.0
#include "codec/data/java_keystore.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/free_with.h"

namespace codec {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
constexpr std::string_view kPassword = "changeit";
// The integrity check is a SHA-1 of the password, these words and the store: JDK,
// sun.security.provider.JavaKeyStore.
constexpr std::string_view kSalt = "Mighty Aphrodite";
constexpr uint64_t kMagic = 0xFEEDFEED;
constexpr uint64_t kVersion = 2;
constexpr uint64_t kTrustedCertificate = 2;

void AppendNumber(uint64_t value, int bytes, std::string* out) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    *out += static_cast<char>(value >> shift & 0xff);
  }
}

void AppendText(std::string_view text, std::string* out) {
  AppendNumber(text.size(), 2, out);
  out->append(text);
}

// Base64 in lines. OpenSSL's, since a hundred certificates are decoded for every run.
std::optional<std::string> DecodeLines(std::string_view text) {
  std::string bytes(text.size(), '\0');
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  std::unique_ptr<EVP_ENCODE_CTX, FreeWith<EVP_ENCODE_CTX_free>> context(EVP_ENCODE_CTX_new());
  int written = 0;
  int rest = 0;
  EVP_DecodeInit(context.get());
  bool read = EVP_DecodeUpdate(context.get(), out, &written,
                               reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size())) >= 0 &&
              EVP_DecodeFinal(context.get(), out + written, &rest) == 1;
  if (!read || written + rest == 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(written + rest));
  return bytes;
}

std::vector<std::string> Certificates(std::string_view pem) {
  std::vector<std::string> certificates;
  for (size_t begin = pem.find(kBegin); begin != std::string_view::npos;) {
    pem.remove_prefix(begin + kBegin.size());
    size_t end = pem.find(kEnd);
    if (end == std::string_view::npos) break;
    std::optional<std::string> der = DecodeLines(pem.substr(0, end));
    if (der) certificates.push_back(std::move(*der));
    begin = pem.find(kBegin);
  }
  return certificates;
}

}  // namespace

std::string RenderJavaKeyStore(std::string_view pem) {
  std::vector<std::string> certificates = Certificates(pem);
  std::string store;
  store.reserve(pem.size());
  AppendNumber(kMagic, 4, &store);
  AppendNumber(kVersion, 4, &store);
  AppendNumber(certificates.size(), 4, &store);
  for (size_t i = 0; i < certificates.size(); ++i) {
    AppendNumber(kTrustedCertificate, 4, &store);
    AppendText("ca" + std::to_string(i), &store);
    AppendNumber(0, 8, &store);  // When it was added: never read.
    AppendText("X.509", &store);
    AppendNumber(certificates[i].size(), 4, &store);
    store += certificates[i];
  }
  std::string checked;
  for (char c : kPassword) {
    checked += '\0';
    checked += c;
  }
  checked.append(kSalt).append(store);
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  ::SHA1(reinterpret_cast<const unsigned char*>(checked.data()), checked.size(), digest.data());
  store.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return store;
}

}  // namespace codec
