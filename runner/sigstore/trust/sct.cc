// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/sct.h"

#include <optional>

#include "codec/data/byte_reader.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/der.h"
#include "sigstore/trust/log_key.h"
#include "sigstore/trust/public_key.h"

namespace sigstore {
namespace {

constexpr size_t kSctsMax = 16;
constexpr uint8_t kVersion1 = 0;
constexpr uint8_t kSha256 = 4;
constexpr uint8_t kRsa = 1;
constexpr uint8_t kEcdsa = 3;
constexpr int kExtensions = 0xa3;  // RFC 5280: the last of a TBSCertificate's fields, [3] EXPLICIT.

void AppendNumber(uint64_t number, int width, std::string* out) {
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) {
    *out += static_cast<char>(number >> shift & 0xff);
  }
}

// Returns what the log saw: the certificate's body as it was before the promises were put in; empty
// if it cannot be made.
std::string PrecertificateBody(const X509* leaf, int position) {
  const std::string der = DerOf(leaf);
  std::string_view bytes = der;
  std::optional<Element> certificate = TakeElement(&bytes);
  std::optional<Element> body = certificate ? TakeElement(&certificate->content) : certificate;
  if (!body) return {};
  std::string_view before = body->content;
  std::optional<Element> field;
  while ((field = TakeElement(&body->content)) && field->tag != kExtensions) {
  }
  std::optional<Element> list = field ? TakeElement(&field->content) : field;
  if (!list) return {};
  before.remove_suffix(field->whole.size() + body->content.size());
  std::string kept;
  for (int i = 0; !list->content.empty(); ++i) {
    std::optional<Element> extension = TakeElement(&list->content);
    if (!extension) return {};
    if (i != position) kept += extension->whole;
  }
  return Wrap(body->tag, std::string(before) + Wrap(kExtensions, Wrap(list->tag, kept)));
}

// RFC 6962, 3.2: digitally-signed struct of a precert_entry.
std::string SignedBytes(const Sct& sct, std::string_view issuer_key_hash, std::string_view body) {
  std::string bytes("\0\0", 2);  // v1, certificate_timestamp.
  AppendNumber(sct.milliseconds, 8, &bytes);
  AppendNumber(1, 2, &bytes);  // precert_entry.
  bytes += issuer_key_hash;
  AppendNumber(body.size(), 3, &bytes);
  bytes += body;
  AppendNumber(sct.extensions.size(), 2, &bytes);
  return bytes + sct.extensions;
}

bool InTime(const Sct& sct, const Interval& valid_for) {
  return valid_for.Contains({static_cast<int64_t>(sct.milliseconds / 1000),
                             static_cast<int32_t>(sct.milliseconds % 1000) * 1000000});
}

}  // namespace

std::optional<std::vector<Sct>> ParseSctList(std::string_view tls) {
  codec::ByteReader outer(tls);
  codec::ByteReader list(outer.TakePrefixed(2));
  if (outer.failed() || !outer.empty()) return std::nullopt;
  std::vector<Sct> scts;
  while (!list.empty()) {
    codec::ByteReader one(list.TakePrefixed(2));
    if (list.failed() || scts.size() == kSctsMax) return std::nullopt;
    if (one.TakeNumber(1) != kVersion1) continue;
    Sct sct;
    sct.log_id = one.Take(32);
    sct.milliseconds = one.TakeNumber(8);
    sct.extensions = one.TakePrefixed(2);
    sct.hash = static_cast<uint8_t>(one.TakeNumber(1));
    sct.algorithm = static_cast<uint8_t>(one.TakeNumber(1));
    sct.signature = one.TakePrefixed(2);
    if (one.failed() || !one.empty()) return std::nullopt;
    scts.push_back(std::move(sct));
  }
  return scts;
}

Check VerifyScts(const X509* leaf, const X509* issuer, const std::vector<TrustedLog>& logs) {
  int position = ::X509_get_ext_by_NID(leaf, NID_ct_precert_scts, -1);
  if (position < 0) {
    return Rejection{Reason::kSctMissing, "the certificate has no signed certificate timestamp"};
  }
  Rejection malformed{Reason::kSctUnverified,
                      "the certificate's signed certificate timestamps are malformed"};
  if (::X509_get_ext_by_NID(leaf, NID_ct_precert_scts, position) >= 0) return malformed;
  // An OCTET STRING in the extension's own.
  std::string_view wrapped = Content(::X509_EXTENSION_get_data(::X509_get_ext(leaf, position)));
  const unsigned char* at = Bytes(wrapped);
  OctetsOwner octets(::d2i_ASN1_OCTET_STRING(nullptr, &at, static_cast<long>(wrapped.size())));
  if (octets == nullptr || at != Bytes(wrapped) + wrapped.size()) return malformed;
  std::optional<std::vector<Sct>> scts = ParseSctList(Content(octets.get()));
  if (!scts) return malformed;
  std::string issuer_key_hash = Digest(Hash::kSha256, SpkiOf(issuer));
  std::string body = PrecertificateBody(leaf, position);
  if (body.empty() || body.size() >= size_t{1} << 24) return malformed;
  for (const Sct& sct : *scts) {
    const TrustedLog* log = FindLog(logs, sct.log_id);
    if (log == nullptr || !InTime(sct, log->valid_for)) continue;
    PublicKey key = TRY(KeyOf(*log));
    uint8_t algorithm = key.kind() == PublicKey::Kind::kRsa ? kRsa : kEcdsa;
    if (sct.hash == kSha256 && sct.algorithm == algorithm &&
        key.Verifies(Hash::kSha256, SignedBytes(sct, issuer_key_hash, body), sct.signature)) {
      return Pass();
    }
  }
  return Rejection{Reason::kSctUnverified,
                   "no certificate log of the trusted root vouches for the certificate"};
}

}  // namespace sigstore
