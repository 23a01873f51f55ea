// SPDX-License-Identifier: Apache-2.0
// Bundles and cosign's older layers, against trusted roots that are as hostile. An input is a root
// on one line (an empty one: the built-in root) and behind it a bundle, or a layer's parts, apart
// by \x01. Whatever it is, nothing of it signs an artifact that the corpus's keys never signed.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sigstore/verify.h"

namespace {

// What the corpus signs, and what nothing in it signs.
constexpr std::string_view kSigned =
    "b29814cf5792e684cd75d6a7fce7a67a11887e312f87ca2ac2496d81f365ff72";
constexpr std::string_view kOther =
    "0000000000000000000000000000000000000000000000000000000000000000";
// The key of the corpus's layers.
constexpr std::string_view kKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/kYtsE3lwtj9p7fu3At21IfupU7U\n"
    "Qdg6wcYJJiSmmNsBrszIGjnEhjSrMAve3uI3qgMuMEe09xVuT8LlvsdRJQ==\n"
    "-----END PUBLIC KEY-----\n";

std::string_view TakePart(std::string_view* text, char end) {
  std::string_view part = text->substr(0, text->find(end));
  text->remove_prefix(std::min(part.size() + 1, text->size()));
  return part;
}

sigstore::LegacySignature Layer(std::string_view text) {
  sigstore::LegacySignature layer;
  for (std::string* part : {&layer.payload, &layer.signature, &layer.certificate, &layer.chain,
                            &layer.bundle, &layer.timestamp}) {
    *part = TakePart(&text, '\x01');
  }
  return layer;
}

bool Verifies(std::string_view text, std::string_view digest, sigstore::SignerRule signer,
              const sigstore::TrustedRoot& root) {
  sigstore::VerifyOptions options;
  options.signer = std::move(signer);
  options.any_predicate = true;
  sigstore::Verdict verdict = text.find('\x01') == std::string_view::npos
                                  ? sigstore::VerifyBundle(text, digest, options, &root)
                                  : sigstore::VerifyLegacy(Layer(text), digest, options, &root);
  const sigstore::Rejection* rejection = std::get_if<sigstore::Rejection>(&verdict);
  ENSURE(rejection == nullptr || !rejection->detail.empty());
  return rejection == nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string_view first = TakePart(&input, '\n');
  Result<sigstore::TrustedRoot> given = sigstore::ParseTrustedRoot(first);
  if (!first.empty() && !given.ok()) return 0;
  const sigstore::TrustedRoot& root = given.ok() ? given.value() : sigstore::EmbeddedTrustedRoot();
  sigstore::IdentityRule anybody{"https://token.actions.githubusercontent.com", "**", {}};
  (void)Verifies(input, kSigned, anybody, root);
  ENSURE(!Verifies(input, kOther, anybody, root));
  ENSURE(!Verifies(input, kOther, sigstore::KeyRule{std::string(kKey), true}, root));
  return 0;
}
