// SPDX-License-Identifier: Apache-2.0
#include "codec/data/java_keystore.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/free_with.h"
#include "base/result.h"
#include "codec/text/base64.h"

namespace codec {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
constexpr std::string_view kPassword = "changeit";
// The integrity check is a SHA-1 of the password, these words and the store: JDK,
// sun.security.provider.JavaKeyStore.
constexpr std::string_view kSalt = "Mighty Aphrodite";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kHeadBytes = 12;
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

// Decodes Base64 in lines; blanks around them do not count.
std::optional<std::string> DecodeLines(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (size_t end = 0; end < text.size();) {
    const size_t begin = text.find_first_not_of(kBlanks, end);
    if (begin == std::string_view::npos) break;
    end = std::min(text.find_first_of(kBlanks, begin), text.size());
    joined.append(text, begin, end - begin);
  }
  return joined.empty() ? std::nullopt : DecodeBase64(joined);
}

}  // namespace

void JavaKeyStore::Add(std::string_view pem) {
  entries_.reserve(entries_.size() + pem.size());
  for (size_t begin = pem.find(kBegin); begin != std::string_view::npos; begin = pem.find(kBegin)) {
    pem.remove_prefix(begin + kBegin.size());
    size_t end = pem.find(kEnd);
    if (end == std::string_view::npos) return;
    std::optional<std::string> der = DecodeLines(pem.substr(0, end));
    if (!der) continue;
    AppendNumber(kTrustedCertificate, 4, &entries_);
    AppendText("ca" + std::to_string(count_++), &entries_);
    AppendNumber(0, 8, &entries_);  // When it was added: never read.
    AppendText("X.509", &entries_);
    AppendNumber(der->size(), 4, &entries_);
    entries_ += *der;
  }
}

std::string JavaKeyStore::Render() const {
  std::string store;
  store.reserve(kHeadBytes + entries_.size() + SHA_DIGEST_LENGTH);
  AppendNumber(kMagic, 4, &store);
  AppendNumber(kVersion, 4, &store);
  AppendNumber(count_, 4, &store);
  store += entries_;
  std::string prefix;
  for (char c : kPassword) {
    prefix += '\0';
    prefix += c;
  }
  prefix += kSalt;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>> sum(EVP_MD_CTX_new());
  bool summed = EVP_DigestInit_ex(sum.get(), EVP_sha1(), nullptr) == 1 &&
                EVP_DigestUpdate(sum.get(), prefix.data(), prefix.size()) == 1 &&
                EVP_DigestUpdate(sum.get(), store.data(), store.size()) == 1 &&
                EVP_DigestFinal_ex(sum.get(), digest.data(), nullptr) == 1;
  ENSURE(summed);
  store.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return store;
}

}  // namespace codec
