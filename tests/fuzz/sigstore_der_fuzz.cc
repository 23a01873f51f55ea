// SPDX-License-Identifier: Apache-2.0
// What a bundle holds in base64: certificates with Fulcio's extensions, timestamps, certificate
// logs' promises, keys, and checkpoints. The first byte says which.
#include <cstddef>
#include <cstdint>

#include "sigstore/checkpoint.h"
#include "sigstore/fulcio_identity.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/path.h"
#include "sigstore/trust/sct.h"
#include "sigstore/trust/timestamp.h"

namespace {

void CheckCertificate(std::string_view der) {
  CertificateOwner certificate = sigstore::ParseCertificate(der);
  if (certificate == nullptr) return;
  (void)sigstore::ValidAt(certificate.get(), {1700000000, 5});
  (void)sigstore::Permits(certificate.get(), NID_code_sign, false);
  const sigstore::TrustedAuthority itself{"", {std::string(der)}, std::nullopt, false};
  sigstore::Checked<sigstore::Authority> authority = sigstore::ReadAuthority(itself);
  if (authority.ok()) {
    (void)sigstore::BuildChain(certificate.get(), authority.value(), NID_code_sign);
  }
  const std::vector<sigstore::TrustedLog>& logs =
      sigstore::EmbeddedTrustedRoot().instances.front().certificate_logs;
  ENSURE(!sigstore::VerifyScts(certificate.get(), certificate.get(), logs).ok());
  sigstore::Checked<sigstore::FulcioIdentity> identity = sigstore::ReadIdentity(certificate.get());
  if (!identity.ok()) return;
  ENSURE(!identity.value().names.empty());
  for (const std::string& name : identity.value().names) {
    ENSURE(!name.empty() && name.find('\0') == std::string::npos);
    sigstore::IdentityRule rule{identity.value().issuer, name, {}};
    ENSURE(sigstore::MatchIdentity(identity.value(), rule).ok() == !rule.issuer.empty());
  }
}

void CheckTimestamp(std::string_view der) {
  const std::vector<sigstore::TrustedAuthority>& authorities =
      sigstore::EmbeddedTrustedRoot().instances.front().timestamp_authorities;
  sigstore::Checked<std::optional<sigstore::Instant>> time =
      sigstore::VerifyTimestamp(der, "never stamped", authorities);
  ENSURE(!time.ok() || !time.value());
}

void CheckKey(std::string_view pem) {
  sigstore::Checked<sigstore::PublicKey> key =
      sigstore::PublicKey::FromPem(pem, sigstore::Reason::kBadKey);
  if (!key.ok()) return;
  ENSURE(!key.value().Verifies(sigstore::Hash::kSha256, "message", "signature"));
  ENSURE(sigstore::PublicKey::FromSpki(key.value().spki(), sigstore::Reason::kBadKey).ok());
}

void CheckCheckpoint(std::string_view envelope) {
  sigstore::Checked<sigstore::Checkpoint> checkpoint = sigstore::ParseCheckpoint(envelope);
  if (!checkpoint.ok()) return;
  ENSURE(envelope.starts_with(checkpoint.value().text) && checkpoint.value().root.size() == 32);
  ENSURE(!checkpoint.value().signatures.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'c') CheckCertificate(input);
  if (data[0] == 't') CheckTimestamp(input);
  if (data[0] == 's') (void)sigstore::ParseSctList(input);
  if (data[0] == 'p') CheckKey(input);
  if (data[0] == 'k') CheckCheckpoint(input);
  return 0;
}
