// SPDX-License-Identifier: Apache-2.0
#include "gateway/credentials.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

namespace gateway {
namespace {

constexpr std::string_view kMarker = "openshell:resolve:env:";
// A Basic credential is short; longer ones are not decoded, so they are not changed either.
constexpr size_t kBasicBytesMax = 4096;

bool IsNameChar(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool HasMarker(std::string_view text) { return text.find(kMarker) != std::string_view::npos; }

// The name behind the marker that `text` starts with.
std::string_view NameAt(std::string_view text) {
  std::string_view rest = text.substr(kMarker.size());
  size_t size =
      static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), IsNameChar) - rest.begin());
  return rest.substr(0, size);
}

// The name when `text` is one placeholder and nothing else.
std::optional<std::string_view> WholePlaceholder(std::string_view text) {
  if (text.substr(0, kMarker.size()) != kMarker) return std::nullopt;
  std::string_view name = NameAt(text);
  if (name.empty() || kMarker.size() + name.size() != text.size()) return std::nullopt;
  return name;
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Query escapes undone; what is no valid escape stays (the query was judged before).
std::string DecodeQueryPart(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) && HexDigit(text[i + 2])) {
      out += static_cast<char>(*HexDigit(text[i + 1]) * 16 + *HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string PercentEncode(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : bytes) {
    if (IsNameChar(c) || c == '-' || c == '.' || c == '~') {
      out += c;
      continue;
    }
    unsigned char byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > kBasicBytesMax) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                             reinterpret_cast<const unsigned char*>(text.data()),
                             static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  size_t padding = text.back() != '=' ? 0 : (text[text.size() - 2] == '=' ? 2 : 1);
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                             reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

CredentialRefusal Unavailable(std::string detail) {
  return {500, "credential_unavailable", std::move(detail)};
}

}  // namespace

std::string PlaceholderFor(std::string_view name) {
  return std::string(kMarker) + std::string(name);
}

// One request being worked on: the first refusal sticks.
struct Credentials::Attempt {
  const std::vector<BoundSecret>& secrets;
  std::string_view host;
  bool confidential;
  std::optional<CredentialRefusal> refusal = std::nullopt;

  void Refuse(CredentialRefusal because) {
    if (!refusal.has_value()) refusal = std::move(because);
  }

  // The value for `name` here, borrowed; empty after a refusal.
  std::string_view ValueOf(std::string_view name) {
    bool known = false;
    for (const BoundSecret& secret : secrets) {
      if (secret.name != name) continue;
      known = true;
      if (secret.host != host) continue;
      std::string_view value = secret.value.reveal();
      constexpr std::string_view kUnsafe("\r\n\0", 3);
      if (value.empty() || value.find_first_of(kUnsafe) != std::string_view::npos) {
        Refuse(Unavailable("credential " + std::string(name) + " cannot be sent in a request"));
        return {};
      }
      if (!confidential) {
        Refuse({403, "credential_endpoint_mismatch",
                "credential " + std::string(name) + " is not sent without TLS"});
        return {};
      }
      return value;
    }
    if (!known) {
      Refuse(Unavailable("credential " + std::string(name) + " is not known"));
    } else {
      Refuse({403, "credential_endpoint_mismatch",
              "credential " + std::string(name) + " is bound to another host"});
    }
    return {};
  }

  void Misplaced(std::string_view where) {
    Refuse(Unavailable("placeholder in an unsupported place of the " + std::string(where)));
  }

  void ApplyToBasic(std::string& value, size_t credential_at) {
    std::optional<std::string> decoded =
        DecodeBase64(std::string_view(value).substr(credential_at));
    if (!decoded.has_value() || !HasMarker(*decoded)) return;
    // "user:password": the placeholder's own colons come behind the first one, or before it ends.
    std::string_view text = *decoded;
    std::string user;
    std::string_view rest = text;
    if (text.substr(0, kMarker.size()) == kMarker) {
      std::string_view name = NameAt(text);
      user = ValueOf(name);
      rest = text.substr(kMarker.size() + name.size());
    } else {
      user = text.substr(0, text.find(':'));
      rest = text.substr(user.size());
    }
    std::string password;
    if (!rest.empty()) {
      if (rest.front() != ':') return Misplaced("Authorization header");
      std::optional<std::string_view> name = WholePlaceholder(rest.substr(1));
      password = name.has_value() ? ValueOf(*name) : rest.substr(1);
    }
    if (HasMarker(user) || HasMarker(password)) return Misplaced("Authorization header");
    std::string joined = rest.empty() ? user : user + ":" + password;
    value = value.substr(0, credential_at) + EncodeBase64(joined);
    for (std::string* used : {&user, &password, &joined}) {
      OPENSSL_cleanse(used->data(), used->size());
    }
  }

  void ApplyToField(codec::HttpField& field) {
    std::string& value = field.value;
    size_t space = value.find(' ');
    std::string_view scheme = std::string_view(value).substr(0, space);
    if (space != std::string::npos && codec::EqualIgnoringCase(scheme, "basic")) {
      size_t credential_at = value.find_first_not_of(' ', space);
      if (credential_at != std::string::npos) ApplyToBasic(value, credential_at);
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
    for (size_t at = path.find(kMarker); at != std::string::npos;) {
      std::string_view name = NameAt(std::string_view(path).substr(at));
      std::string_view secret = ValueOf(name);
      if (refusal.has_value()) return;
      bool unsafe = secret.find_first_of("/\\?#") != std::string_view::npos ||
                    secret.find("..") != std::string_view::npos;
      if (unsafe) return Refuse(Unavailable("credential cannot be part of a path"));
      std::string encoded = PercentEncode(secret);
      path.replace(at, kMarker.size() + name.size(), encoded);
      at = path.find(kMarker, at + encoded.size());
    }
  }

  void ApplyToQuery(std::string& query) {
    std::string out;
    std::string_view rest = query;
    for (;;) {
      size_t end = std::min(rest.find('&'), rest.size());
      std::string_view pair = rest.substr(0, end);
      size_t equals = std::min(pair.find('='), pair.size());
      std::string value = DecodeQueryPart(pair.substr(std::min(equals + 1, pair.size())));
      if (HasMarker(DecodeQueryPart(pair.substr(0, equals)))) return Misplaced("query");
      if (HasMarker(value)) {
        std::optional<std::string_view> name = WholePlaceholder(value);
        if (!name.has_value()) return Misplaced("query");
        out.append(pair.substr(0, equals + 1)).append(PercentEncode(ValueOf(*name)));
      } else {
        out.append(pair);
      }
      if (end == rest.size()) break;
      out += '&';
      rest.remove_prefix(end + 1);
    }
    query = std::move(out);
  }
};

std::optional<CredentialRefusal> Credentials::Apply(std::string_view host, bool confidential,
                                                    const CredentialSites& sites) const {
  Attempt attempt{secrets_, host, confidential};
  for (codec::HttpField& field : *sites.fields) attempt.ApplyToField(field);
  attempt.ApplyToPath(*sites.path);
  attempt.ApplyToQuery(*sites.query);
  return std::move(attempt.refusal);
}

bool Credentials::BoundTo(std::string_view host) const {
  return std::any_of(secrets_.begin(), secrets_.end(),
                     [&](const BoundSecret& secret) { return secret.host == host; });
}

std::string RedactPlaceholders(std::string_view text) {
  std::string out;
  for (;;) {
    size_t at = text.find(kMarker);
    out.append(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at);
    text.remove_prefix(kMarker.size() + NameAt(text).size());
    out += "[CREDENTIAL]";
  }
}

}  // namespace gateway
