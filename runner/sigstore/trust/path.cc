// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/path.h"

#include <algorithm>
#include <optional>

#include "sigstore/trust/der.h"

namespace sigstore {
namespace {

// 112 bits: no SHA-1, no RSA below 2048.
constexpr int kSecurityLevel = 2;
constexpr int kDepthMax = 8;
constexpr int kVersionField = 0xa0;  // RFC 5280: [0] EXPLICIT, before a TBSCertificate's others.
constexpr int kFieldsBeforeSubject = 4;

using NameOwner = std::unique_ptr<X509_NAME, FreeWith<X509_NAME_free>>;

// Returns the name of the certificate's holder; nullptr for a malformed certificate.
NameOwner SubjectOf(std::string_view der) {
  std::optional<Element> certificate = TakeElement(&der);
  std::optional<Element> body = certificate ? TakeElement(&certificate->content) : certificate;
  if (!body) return nullptr;
  std::optional<Element> field = TakeElement(&body->content);
  if (field && field->tag == kVersionField) field = TakeElement(&body->content);
  for (int i = 0; field && i < kFieldsBeforeSubject; ++i) field = TakeElement(&body->content);
  if (!field) return nullptr;
  const unsigned char* at = Bytes(field->whole);
  return NameOwner(::d2i_X509_NAME(nullptr, &at, static_cast<long>(field->whole.size())));
}

int SearchIndex() {
  static const int index = X509_STORE_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Returns whether the authority has both, one after the other, and this was found out before.
bool Proved(const Authority& authority, const X509* subject, const X509* issuer) {
  const Chain& all = authority.certificates;
  for (size_t i = 0; authority.proved && i + 1 < all.size(); ++i) {
    if (::X509_cmp(all[i].get(), subject) == 0) return ::X509_cmp(all[i + 1].get(), issuer) == 0;
  }
  return false;
}

bool Signed(X509* subject, X509* issuer) {
  EVP_PKEY* key = ::X509_get0_pubkey(issuer);
  return key != nullptr && (::X509_get_key_usage(issuer) & X509v3_KU_KEY_CERT_SIGN) != 0 &&
         ::X509_verify(subject, key) == 1;
}

Chain PathOf(X509_STORE_CTX* context) {
  STACK_OF(X509)* path = ::X509_STORE_CTX_get0_chain(context);
  Chain chain;
  for (int i = 0; i < sk_X509_num(path); ++i) {
    X509* certificate = sk_X509_value(path, i);
    ENSURE(::X509_up_ref(certificate) == 1);
    chain.emplace_back(certificate);
  }
  return chain;
}

// The library's last step but one, once a path is found and its extensions are judged: it would
// verify every signature of it. Besides, this leaves the path where it can be read: the library
// does not expose that of a timestamp.
int VerifySignatures(X509_STORE_CTX* context) {
  auto* search = static_cast<Search*>(
      ::X509_STORE_get_ex_data(::X509_STORE_CTX_get0_store(context), SearchIndex()));
  Chain path = PathOf(context);
  for (size_t i = path.size() - 1; i > 0; --i) {
    X509* subject = path[i - 1].get();
    X509* issuer = path[i].get();
    if (Proved(search->authority, subject, issuer) || Signed(subject, issuer)) continue;
    ::X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_SIGNATURE_FAILURE);
    return 0;
  }
  search->path = std::move(path);
  return 1;
}

}  // namespace

Checked<Authority> ReadAuthority(const TrustedAuthority& trusted) {
  Authority authority;
  for (const std::string& der : trusted.certificates) {
    authority.certificates.push_back(ParseCertificate(der));
    if (authority.certificates.back() == nullptr) {
      return Rejection{Reason::kTrustRoot, "an authority's certificate is malformed"};
    }
  }
  if (authority.certificates.empty()) {
    return Rejection{Reason::kTrustRoot, "an authority has no certificate"};
  }
  authority.proved = trusted.proved;
  return authority;
}

bool MayHaveIssued(const TrustedAuthority& trusted, const X509* leaf) {
  return std::any_of(
      trusted.certificates.begin(), trusted.certificates.end(), [&](const auto& der) {
        NameOwner name = SubjectOf(der);
        return name == nullptr || ::X509_NAME_cmp(name.get(), ::X509_get_issuer_name(leaf)) == 0 ||
               ::X509_NAME_cmp(name.get(), ::X509_get_subject_name(leaf)) == 0;
      });
}

StoreOwner MakeStore(Search* search) {
  StoreOwner store(::X509_STORE_new());
  ENSURE(store != nullptr);
  X509_VERIFY_PARAM* rules = ::X509_STORE_get0_param(store.get());
  ::X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
  ::X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  ::X509_VERIFY_PARAM_set_depth(rules, kDepthMax);
  ENSURE(::X509_STORE_add_cert(store.get(), search->authority.certificates.back().get()) == 1);
  ENSURE(::X509_STORE_set_ex_data(store.get(), SearchIndex(), search) == 1);
  ::X509_STORE_set_verify(store.get(), VerifySignatures);
  return store;
}

Check CheckAuthorities(const Chain& path, int use) {
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    if (!Permits(path[i].get(), use, true)) {
      return Rejection{Reason::kEku, "an authority on the path may not issue for this use"};
    }
  }
  return Pass();
}

Checked<Chain> BuildChain(X509* leaf, const Authority& authority, int use) {
  Search search{authority, {}};
  StoreOwner store = MakeStore(&search);
  StoreContextOwner context(::X509_STORE_CTX_new());
  BorrowedStack others(sk_X509_new_null());
  ENSURE(context != nullptr && others != nullptr);
  for (size_t i = 0; i + 1 < authority.certificates.size(); ++i) {
    ENSURE(sk_X509_push(others.get(), authority.certificates[i].get()) > 0);
  }
  ENSURE(::X509_STORE_CTX_init(context.get(), store.get(), leaf, others.get()) == 1);
  if (::X509_verify_cert(context.get()) != 1) {
    int error = ::X509_STORE_CTX_get_error(context.get());
    return Rejection{Reason::kChain, std::string("no path to a trusted authority: ") +
                                         ::X509_verify_cert_error_string(error)};
  }
  TRY(CheckAuthorities(search.path, use));
  return std::move(search.path);
}

const X509* FirstInvalid(const Chain& path, const Instant& at) {
  for (const CertificateOwner& certificate : path) {
    if (!ValidAt(certificate.get(), at)) return certificate.get();
  }
  return nullptr;
}

}  // namespace sigstore
