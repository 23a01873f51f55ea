// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/timestamp.h"

#include <openssl/err.h>
#include <openssl/tserr.h>

#include <optional>
#include <string>

#include "sigstore/trust/certificate.h"
#include "sigstore/trust/openssl_owner.h"
#include "sigstore/trust/path.h"

namespace sigstore {
namespace {

constexpr size_t kResponseBytesMax = size_t{64} << 10;

Rejection Refused(std::string_view what) {
  return {Reason::kTsa, "the timestamp " + std::string(what)};
}

// Why not, by the library's code, and empties its queue. Its own words are not asked for: they are
// loaded for every part of it at once.
std::string_view TakeLibraryError() {
  unsigned long code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  if (ERR_GET_LIB(code) == ERR_LIB_PKCS7) return "has a different signer";
  if (ERR_GET_LIB(code) != ERR_LIB_TS) return "does not verify";
  switch (ERR_GET_REASON(code)) {
    case TS_R_MESSAGE_IMPRINT_MISMATCH:
      return "is for something else: message imprint mismatch";
    case TS_R_NO_TIME_STAMP_TOKEN:
      return "was not granted";
    case TS_R_CERTIFICATE_VERIFY_ERROR:
      return "is signed with a certificate that is not the authority's";
    case TS_R_SIGNATURE_FAILURE:
      return "has an invalid signature";
    default:
      return "does not verify";
  }
}

// The response's hash of what was stamped is one that we believe in.
bool StrongImprint(const TS_TST_INFO* info) {
  TS_MSG_IMPRINT* imprint = ::TS_TST_INFO_get_msg_imprint(const_cast<TS_TST_INFO*>(info));
  const ASN1_OBJECT* algorithm = nullptr;
  ::X509_ALGOR_get0(&algorithm, nullptr, nullptr, ::TS_MSG_IMPRINT_get_algo(imprint));
  int hash = ::OBJ_obj2nid(algorithm);
  return hash == NID_sha256 || hash == NID_sha384 || hash == NID_sha512;
}

std::optional<Instant> TimeOf(const TS_TST_INFO* info) {
  const ASN1_GENERALIZEDTIME* time = ::TS_TST_INFO_get_time(info);
  tm parts{};
  if (time == nullptr || ::ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  Instant instant{::timegm(&parts)};
  // 20250612120216.123Z
  std::string_view text = Content(time);
  size_t point = text.find('.');
  if (point == std::string_view::npos) return instant;
  int32_t scale = 100000000;
  for (char digit : text.substr(point + 1)) {
    if (digit < '0' || digit > '9') break;
    instant.nanos += (digit - '0') * scale;
    scale /= 10;
  }
  return instant;
}

// The library's part: version, imprint, signature, the signer's path to the anchor with its usage,
// and that the response names the signer's certificate (ESSCertID). Gives the path.
Checked<Chain> VerifyResponse(TS_RESP* response, std::string_view signature,
                              const Authority& authority) {
  TimestampContextOwner context(::TS_VERIFY_CTX_new());
  ENSURE(context != nullptr);
  Search search{authority, {}};
  STACK_OF(X509)* certificates = sk_X509_new_null();
  for (const CertificateOwner& one : authority.certificates) {
    ENSURE(::X509_up_ref(one.get()) == 1 && sk_X509_push(certificates, one.get()) > 0);
  }
  ::TS_VERIFY_CTX_set_flags(context.get(), TS_VFY_VERSION | TS_VFY_SIGNATURE | TS_VFY_DATA);
  // The context takes all three.
  ::TS_VERIFY_CTX_set_store(context.get(), MakeStore(&search).release());
  ::TS_VERIFY_CTX_set_certs(context.get(), certificates);
  ::TS_VERIFY_CTX_set_data(context.get(),
                           ::BIO_new_mem_buf(signature.data(), static_cast<int>(signature.size())));
  ::ERR_clear_error();
  if (::TS_RESP_verify_response(context.get(), response) != 1) return Refused(TakeLibraryError());
  if (search.path.empty()) return Refused("has no path to its authority");
  return std::move(search.path);
}

Checked<Instant> VerifyBy(TS_RESP* response, std::string_view signature,
                          const TrustedAuthority& trusted) {
  Authority authority = TRY(ReadAuthority(trusted));
  Chain chain = TRY(VerifyResponse(response, signature, authority));
  const TS_TST_INFO* info = ::TS_RESP_get_tst_info(response);
  if (!StrongImprint(info)) return Refused("uses a weak hash");
  std::optional<Instant> time = TimeOf(info);
  if (!time) return Refused("has no time");
  const X509* first = authority.certificates.front().get();
  bool signer_listed = ::X509_check_ca(const_cast<X509*>(first)) == 0;
  if (signer_listed && ::X509_cmp(chain.front().get(), first) != 0) {
    return Refused("is not signed by the authority that the trusted root lists");
  }
  TRY(CheckAuthorities(chain, NID_time_stamp));
  if (FirstInvalid(chain, *time) != nullptr) {
    return Rejection{
        Reason::kCertExpired,
        "a certificate of the timestamp authority was not valid at the time of the timestamp"};
  }
  if (trusted.valid_for && !trusted.valid_for->Contains(*time)) {
    return Rejection{Reason::kCaValidity,
                     "the trusted root does not trust the timestamp authority '" + trusted.uri +
                         "' at that time"};
  }
  return *time;
}

// Returns whether an authority of the root may have made it: by the names that it gives its signer
// and the signer's issuer, which is not a proof. True if it does not name them.
bool MayBeKnown(TS_RESP* response, const std::vector<TrustedAuthority>& authorities) {
  PKCS7* token = ::TS_RESP_get_token(response);
  STACK_OF(PKCS7_SIGNER_INFO)* signers = token ? ::PKCS7_get_signer_info(token) : nullptr;
  if (signers == nullptr || sk_PKCS7_SIGNER_INFO_num(signers) != 1) return true;
  const PKCS7_ISSUER_AND_SERIAL* named = sk_PKCS7_SIGNER_INFO_value(signers, 0)->issuer_and_serial;
  if (named == nullptr || named->issuer == nullptr) return true;
  for (const TrustedAuthority& trusted : authorities) {
    Checked<Authority> authority = ReadAuthority(trusted);
    if (!authority.ok()) return true;
    for (const CertificateOwner& one : authority.value().certificates) {
      if (::X509_NAME_cmp(named->issuer, ::X509_get_subject_name(one.get())) == 0 ||
          ::X509_NAME_cmp(named->issuer, ::X509_get_issuer_name(one.get())) == 0) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Checked<std::optional<Instant>> VerifyTimestamp(std::string_view response,
                                                std::string_view signature,
                                                const std::vector<TrustedAuthority>& authorities) {
  if (response.size() > kResponseBytesMax) return Refused("is too long");
  const unsigned char* at = Bytes(response);
  TimestampResponseOwner parsed(::d2i_TS_RESP(nullptr, &at, static_cast<long>(response.size())));
  if (parsed == nullptr || at != Bytes(response) + response.size()) {
    return Refused("is malformed");
  }
  if (!MayBeKnown(parsed.get(), authorities)) return std::optional<Instant>();
  Rejection why = Refused("is not from an authority in the trusted root");
  for (const TrustedAuthority& authority : authorities) {
    Checked<Instant> time = VerifyBy(parsed.get(), signature, authority);
    if (time.ok()) return std::optional(time.value());
    // An authority that signed it but may not be believed says more than one that did not.
    if (why.reason == Reason::kTsa) why = time.error();
  }
  return why;
}

}  // namespace sigstore
