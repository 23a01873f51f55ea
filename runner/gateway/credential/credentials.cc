// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/credentials.h"

#include <algorithm>

#include "codec/glob/glob.h"
#include "codec/text/base64.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "gateway/credential/client_credentials.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

CredentialRefusal Mismatch(std::string_view name, std::string_view why) {
  return {403, "credential_endpoint_mismatch",
          "credential " + std::string(name) + " " + std::string(why)};
}

bool IsBoundHere(const BoundSecret& secret, const CredentialTarget& target) {
  return policy::HostMatches(secret.host, target.host) &&
         (secret.port == 0 || secret.port == target.port) &&
         codec::PathSelectorMatches(secret.path, target.path);
}

}  // namespace

CredentialRefusal CredentialUnavailable(std::string detail) {
  return {500, "credential_unavailable", std::move(detail)};
}

// One request being worked on: the first refusal sticks.
class Credentials::Attempt {
 public:
  Attempt(const Credentials& credentials, const CredentialTarget& target,
          const CredentialSites& sites)
      : credentials_(credentials), target_(target), sites_(sites) {}

  std::optional<CredentialRefusal> Run() {
    const BoundSecret* own = RemoveTheClients();
    std::string token(TokenInUrl(*sites_.path, *sites_.query));
    if (!token.empty()) Refuse({403, "credential_in_url", token + " in the URL of a request"});
    for (codec::HttpField& field : *sites_.fields) ApplyToField(field);
    ApplyToPath(*sites_.path);
    ApplyToQuery(*sites_.query);
    if (own != nullptr) Insert(*own);
    for (const BoundSecret& secret : credentials_.secrets_) {
      if (!IsBoundHere(secret, target_)) continue;
      for (const auto& [name, text] : secret.placement.added_headers) AddTo(name, text);
    }
    return std::move(refusal_);
  }

  // The credential that goes in though no placeholder asks for it; nullptr if none.
  const BoundSecret* RemoveTheClients() {
    const BoundSecret* own = nullptr;
    bool signing = target_.signing;
    bool placeholder = false;
    for (const BoundSecret& secret : credentials_.secrets_) {
      if (!IsBoundHere(secret, target_)) continue;
      signing |= !secret.placement.signing_service.empty();
      placeholder |= RemoveOwnCredentials(secret.placement, sites_);
      if (own == nullptr && !secret.placement.header.empty()) own = &secret;
    }
    if (signing) RemoveSignature(sites_);
    return placeholder ? nullptr : own;
  }

 private:
  void Refuse(CredentialRefusal because) {
    if (!refusal_.has_value()) refusal_ = std::move(because);
  }

  void Misplaced(std::string_view where) {
    Refuse(
        CredentialUnavailable("placeholder in an unsupported place of the " + std::string(where)));
  }

  std::string_view ValueOf(std::string_view name) {
    ResolvedCredential resolved = credentials_.Resolve(target_, name);
    if (resolved.refusal.has_value()) Refuse(std::move(*resolved.refusal));
    return resolved.value;
  }

  void Insert(const BoundSecret& secret) {
    const AuthPlacement& placement = secret.placement;
    SecretString value = std::string(ValueOf(secret.name));
    if (codec::EqualIgnoringCase(placement.scheme, "basic")) {
      value = codec::EncodeBase64(SecretString(placement.user + ":" + value));
    }
    if (!placement.scheme.empty()) value = placement.scheme + " " + value;
    sites_.fields->push_back({placement.header, std::move(value)});
  }

  // To the client's own list of such words, if it has none of them.
  void AddTo(const std::string& name, const std::string& text) {
    auto own = std::find_if(
        sites_.fields->begin(), sites_.fields->end(),
        [&](const codec::HttpField& field) { return codec::EqualIgnoringCase(field.name, name); });
    if (own == sites_.fields->end()) {
      sites_.fields->push_back({name, text});
    } else if (!codec::FieldHasToken(*sites_.fields, name, text)) {
      own->value += "," + text;
    }
  }

  // "user" or "password" of Basic, with its placeholder resolved; nullopt if it is misplaced.
  std::optional<SecretString> BasicPart(std::string_view text) {
    if (!HasMarker(text)) return std::string(text);
    std::optional<std::string_view> name = WholePlaceholder(text);
    if (!name.has_value()) return std::nullopt;
    return std::string(ValueOf(*name));
  }

  void ApplyToBasic(std::string& value, size_t credential_at) {
    std::optional<std::string> decoded =
        codec::DecodeBase64(std::string_view(value).substr(credential_at));
    if (!decoded.has_value() || !HasMarker(*decoded)) return;
    // "user:password": the colons of a placeholder in front are its own.
    std::string_view text = *decoded;
    std::optional<Placeholder> first = FindPlaceholder(text);
    size_t user_size = first.has_value() && first->at == 0 ? first->size : text.find(':');
    user_size = std::min(user_size, text.size());
    std::string_view rest = text.substr(user_size);
    std::optional<SecretString> user = BasicPart(text.substr(0, user_size));
    std::optional<SecretString> password;
    if (rest.empty() || rest.front() == ':') {
      password = BasicPart(rest.substr(std::min<size_t>(1, rest.size())));
    }
    if (!user.has_value() || !password.has_value()) return Misplaced("Authorization header");
    SecretString joined = std::move(*user);
    if (!rest.empty()) joined.append(":").append(*password);
    value = value.substr(0, credential_at) + codec::EncodeBase64(joined);
  }

  void ApplyToField(codec::HttpField& field) {
    std::string& value = field.value;
    size_t space = value.find(' ');
    std::string_view scheme = std::string_view(value).substr(0, space);
    if (space != std::string::npos && codec::EqualIgnoringCase(scheme, "basic")) {
      size_t credential_at = value.find_first_not_of(' ', space);
      if (credential_at != std::string::npos) return ApplyToBasic(value, credential_at);
    }
    if (!HasMarker(value)) {
      if (HasMarker(field.name)) Misplaced("header");
      return;
    }
    size_t begin = space == std::string::npos ? 0 : space + 1;
    std::optional<std::string_view> name = WholePlaceholder(std::string_view(value).substr(begin));
    if (!name.has_value()) return Misplaced("header " + field.name);
    std::string_view secret = ValueOf(*name);
    value = value.substr(0, begin) + std::string(secret);
  }

  void ApplyToPath(std::string& path) {
    size_t from = 0;
    while (std::optional<Placeholder> found = FindPlaceholder(path, from)) {
      std::string_view secret = ValueOf(found->name);
      if (refusal_.has_value()) return;
      bool unsafe = secret.find_first_of("/\\?#") != std::string_view::npos ||
                    secret.find("..") != std::string_view::npos;
      if (unsafe) return Refuse(CredentialUnavailable("credential cannot be part of a path"));
      std::string encoded = codec::PercentEncode(secret);
      path.replace(found->at, found->size, encoded);
      from = found->at + encoded.size();
    }
    if (HasMarker(std::string_view(path).substr(from))) Misplaced("path");
  }

  void ApplyToQuery(std::string& query) {
    if (query.empty()) return;
    std::string out;
    std::string_view rest = query;
    for (;;) {
      size_t end = std::min(rest.find('&'), rest.size());
      std::string_view pair = rest.substr(0, end);
      size_t equals = std::min(pair.find('='), pair.size());
      std::string value = codec::FormDecode(pair.substr(std::min(equals + 1, pair.size())));
      if (HasMarker(codec::FormDecode(pair.substr(0, equals)))) return Misplaced("query");
      if (HasMarker(value)) {
        std::optional<std::string_view> name = WholePlaceholder(value);
        if (!name.has_value()) return Misplaced("query");
        out.append(pair.substr(0, equals + 1)).append(codec::PercentEncode(ValueOf(*name)));
      } else {
        out.append(pair);
      }
      if (end == rest.size()) break;
      out += '&';
      rest.remove_prefix(end + 1);
    }
    query = std::move(out);
  }

  const Credentials& credentials_;
  const CredentialTarget& target_;
  const CredentialSites& sites_;
  std::optional<CredentialRefusal> refusal_;
};

Credentials::Credentials(std::vector<BoundSecret> secrets) : secrets_(std::move(secrets)) {
  int grants = 0;
  for (const BoundSecret& secret : secrets_) grants = std::max(grants, secret.grant + 1);
  for (const BoundSecret& secret : secrets_) mask_.Add(secret.value.reveal());
  for (int i = 0; i < grants; ++i) tokens_.push_back({{}, Deadline::After({})});
}

std::optional<CredentialRefusal> Credentials::Apply(const CredentialTarget& target,
                                                    const CredentialSites& sites) const {
  return Attempt(*this, target, sites).Run();
}

void Credentials::RemoveFromTrailers(const CredentialTarget& target,
                                     codec::HttpFields* fields) const {
  std::string path;
  std::string query;
  (void)Attempt(*this, target, {fields, &path, &query}).RemoveTheClients();
}

ResolvedCredential Credentials::Resolve(const CredentialTarget& target,
                                        std::string_view name) const {
  auto known = [&](std::string_view wanted) {
    return std::any_of(secrets_.begin(), secrets_.end(),
                       [&](const BoundSecret& secret) { return secret.name == wanted; });
  };
  if (!known(name)) name = WithoutRevision(name);
  if (!known(name))
    return {{}, CredentialUnavailable("credential " + std::string(name) + " is unknown")};
  std::string_view why = "is bound to another host";
  for (const BoundSecret& secret : secrets_) {
    if (secret.name != name) continue;
    if (!IsBoundHere(secret, target)) {
      bool this_host = policy::HostMatches(secret.host, target.host);
      bool this_port = secret.port == 0 || secret.port == target.port;
      if (this_host) why = this_port ? "is bound to another path" : "is bound to another port";
      continue;
    }
    if (!target.confidential) return {{}, Mismatch(name, "is sent only over TLS")};
    std::string_view value = secret.value.reveal();
    if (secret.grant >= 0) {
      const Token& token = tokens_[static_cast<size_t>(secret.grant)];
      if (token.values.size() <= secret.part || token.until.passed()) {
        return {{}, CredentialRefusal{502, "token_grant_failed", "has no token yet", secret.grant}};
      }
      value = token.values[secret.part].reveal();
    }
    constexpr std::string_view kUnsafe("\r\n\0", 3);
    if (value.empty() || value.find_first_of(kUnsafe) != std::string_view::npos) {
      return {{},
              CredentialUnavailable("credential " + std::string(name) +
                                    " cannot be sent in a request")};
    }
    return {value, std::nullopt};
  }
  return {{}, Mismatch(name, why)};
}

bool Credentials::BoundTo(std::string_view host, uint16_t port) const {
  return std::any_of(secrets_.begin(), secrets_.end(), [&](const BoundSecret& secret) {
    return policy::HostMatches(secret.host, host) && (secret.port == 0 || secret.port == port);
  });
}

bool Credentials::SearchesBodies(const CredentialTarget& target) const {
  bool passes = std::any_of(secrets_.begin(), secrets_.end(), [&](const BoundSecret& secret) {
    return secret.bodies_pass && IsBoundHere(secret, target);
  });
  return !secrets_.empty() && !passes;
}

std::string_view Credentials::SigningService(const CredentialTarget& target) const {
  for (const BoundSecret& secret : secrets_) {
    bool signs = !secret.placement.signing_service.empty() && IsBoundHere(secret, target);
    if (signs) return secret.placement.signing_service;
  }
  return {};
}

void Credentials::SetToken(int grant, std::vector<Secret> values, Deadline until) {
  for (const Secret& value : values) mask_.Add(value.reveal());
  tokens_.at(static_cast<size_t>(grant)) = {std::move(values), until};
}

void Credentials::Prolong(int grant, Deadline until) {
  tokens_.at(static_cast<size_t>(grant)).until = until;
}

std::string_view Credentials::TokenOf(int grant) const {
  const Token& token = tokens_.at(static_cast<size_t>(grant));
  return token.values.empty() ? std::string_view() : token.values.front().reveal();
}

int Credentials::GrantIn(const codec::HttpFields& fields) const {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view value = TokenOf(static_cast<int>(i));
    const bool there = tokens_[i].values.size() == 1 &&
                       std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
                         return field.value.find(value) != std::string::npos;
                       });
    if (there) return static_cast<int>(i);
  }
  return -1;
}

std::string Credentials::Redact(std::string_view text) const {
  return codec::RedactTokens(mask_.Mask(RedactPlaceholders(text)));
}

}  // namespace gateway
