// SPDX-License-Identifier: Apache-2.0
#include "sigstore/fulcio_identity.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "codec/glob/glob.h"

namespace sigstore {
namespace {

constexpr std::string_view kFulcioArc = "1.3.6.1.4.1.57264.1.";
constexpr int kRawIssuer = 1;
constexpr int kLastRawClaim = 6;  // .1 to .6 are bare text, everything later is DER.
constexpr int kUserName = 7;      // Only ever an otherName.
constexpr int kIssuer = 8;
constexpr size_t kNamesMax = 64;

// The last arc of an OID of Fulcio's; 0 for others.
int FulcioNumber(const ASN1_OBJECT* object) {
  std::string text(64, '\0');
  int size = ::OBJ_obj2txt(text.data(), static_cast<int>(text.size()), object, 1);
  if (size <= 0 || static_cast<size_t>(size) >= text.size()) return 0;
  text.resize(static_cast<size_t>(size));
  if (!text.starts_with(kFulcioArc)) return 0;
  int number = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data() + kFulcioArc.size(), end, number);
  return error == std::errc() && rest == end ? number : 0;
}

// A DER UTF8String and nothing behind it.
std::optional<std::string> DecodeUtf8String(std::string_view der) {
  const unsigned char* at = Bytes(der);
  std::unique_ptr<ASN1_UTF8STRING, FreeWith<ASN1_UTF8STRING_free>> text(
      ::d2i_ASN1_UTF8STRING(nullptr, &at, static_cast<long>(der.size())));
  if (text == nullptr || at != Bytes(der) + der.size()) return std::nullopt;
  return std::string(Content(text.get()));
}

// A subject's name of a kind that names a signer.
std::optional<std::string> NameOf(const GENERAL_NAME* name) {
  switch (name->type) {
    case GEN_URI:
    case GEN_EMAIL:
    case GEN_DNS:
      return std::string(Content(name->d.ia5));
    case GEN_OTHERNAME:
      if (FulcioNumber(name->d.otherName->type_id) != kUserName ||
          name->d.otherName->value->type != V_ASN1_UTF8STRING) {
        return std::nullopt;
      }
      return std::string(Content(name->d.otherName->value->value.utf8string));
    default:
      return std::nullopt;
  }
}

Rejection BadCertificate(const std::string& what) { return {Reason::kBadCertificate, what}; }

// Text with a zero byte is read to its end by some and up to it by others.
bool HasZeroByte(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Check ReadNames(const X509* certificate, std::vector<std::string>* names) {
  int critical = -1;
  NamesOwner found(static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, nullptr)));
  if (found == nullptr) return BadCertificate("the certificate has no subject alternative name");
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    std::optional<std::string> name = NameOf(sk_GENERAL_NAME_value(found.get(), i));
    if (!name) continue;
    if (name->empty() || HasZeroByte(*name) || names->size() == kNamesMax) {
      return BadCertificate("the certificate's subject alternative name is malformed");
    }
    names->push_back(*std::move(name));
  }
  if (names->empty())
    return BadCertificate("the certificate has no URI, email address or user name");
  return Pass();
}

Rejection Mismatch(Reason reason, std::string detail, const FulcioIdentity& identity) {
  return {reason, std::move(detail), identity.names.front(), identity.issuer};
}

}  // namespace

Checked<FulcioIdentity> ReadIdentity(const X509* certificate) {
  FulcioIdentity identity;
  TRY(ReadNames(certificate, &identity.names));
  std::map<int, std::string> found;
  for (int i = 0; i < ::X509_get_ext_count(certificate); ++i) {
    X509_EXTENSION* extension = ::X509_get_ext(certificate, i);
    int number = FulcioNumber(::X509_EXTENSION_get_object(extension));
    if (number == 0) continue;
    std::optional<std::string> value(Content(::X509_EXTENSION_get_data(extension)));
    if (number > kLastRawClaim) value = DecodeUtf8String(*value);
    std::string name = "the certificate's extension ." + std::to_string(number);
    if (!value || HasZeroByte(*value)) return BadCertificate(name + " is malformed");
    if (!found.emplace(number, *std::move(value)).second)
      return BadCertificate(name + " appears twice");
  }
  auto raw = found.find(kRawIssuer);
  auto issuer = found.find(kIssuer);
  if (raw != found.end() && issuer != found.end() && raw->second != issuer->second) {
    return Rejection{Reason::kIssuerConflict, "the certificate names two issuers: '" +
                                                  issuer->second + "' and '" + raw->second + "'"};
  }
  if (issuer != found.end()) {
    identity.issuer = issuer->second;
  } else if (raw != found.end()) {
    identity.issuer = raw->second;
  }
  found.erase(kRawIssuer);
  found.erase(kIssuer);
  identity.claims = std::move(found);
  return identity;
}

Checked<std::string> MatchIdentity(const FulcioIdentity& identity, const IdentityRule& rule) {
  if (identity.issuer.empty() || identity.issuer != rule.issuer) {
    return Mismatch(
        Reason::kIssuerMismatch,
        "the certificate's issuer is '" + identity.issuer + "', not '" + rule.issuer + "'",
        identity);
  }
  auto accepted = std::find_if(identity.names.begin(), identity.names.end(), [&](const auto& name) {
    return name == rule.identity || codec::GlobMatches(rule.identity, name, '/');
  });
  if (accepted == identity.names.end()) {
    return Mismatch(Reason::kIdentityMismatch,
                    "the certificate's identity is '" + identity.names.front() + "', not '" +
                        rule.identity + "'",
                    identity);
  }
  for (const auto& [number, value] : rule.claims) {
    auto claim = identity.claims.find(number);
    if (claim == identity.claims.end() || claim->second != value) {
      std::string found = claim == identity.claims.end() ? "missing" : "'" + claim->second + "'";
      return Mismatch(Reason::kClaimMismatch,
                      "the certificate's extension ." + std::to_string(number) + " is " + found +
                          ", not '" + value + "'",
                      identity);
    }
  }
  return *accepted;
}

}  // namespace sigstore
