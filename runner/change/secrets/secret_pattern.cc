// SPDX-License-Identifier: Apache-2.0
#include "change/secrets/secret_pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "change/secrets/secret_assignment.h"
#include "codec/text/token_form.h"

namespace change {
namespace {

// Documentation writes tokens as ghp_xxxxxxxx or AKIAIOSFODNN7EXAMPLE.
bool IsPlaceholder(std::string_view rest) {
  std::array<bool, 256> seen{};
  int distinct = 0;
  for (char c : rest) {
    bool& was = seen[static_cast<unsigned char>(c)];
    if (!was) ++distinct;
    was = true;
  }
  return distinct < 7 || rest.find("EXAMPLE") != std::string_view::npos ||
         rest.find("example") != std::string_view::npos;
}

// The result of a look at one place: the match, or how many characters need no second look.
struct Attempt {
  std::optional<SecretMatch> match;
  size_t skip = 1;
};

Attempt TokenAt(std::string_view line, size_t at) {
  codec::FoundToken token = codec::FindTokenAt(line, at);
  if (token.form == nullptr) return {};
  std::string_view prefix = token.form->prefix;
  std::string_view rest = line.substr(at + prefix.size(), token.length - prefix.size());
  if (IsPlaceholder(rest)) return {std::nullopt, token.length};
  SecretMatch match{at, token.length, std::string(token.form->issuer), std::string(prefix)};
  return {std::move(match), token.length};
}

// When it does not match, no later start in the same first part does either, so that part is
// skipped.
Attempt WebTokenAt(std::string_view line, size_t at) {
  codec::WebToken token = codec::FindWebTokenAt(line, at);
  if (token.length == 0) return {std::nullopt, std::max<size_t>(token.first_part, 1)};
  return {SecretMatch{at, token.length, "a JSON web token", "eyJ"}, token.length};
}

bool IsBase64(char c) { return ascii::IsAlphanumeric(c) || c == '+' || c == '/' || c == '='; }

// "-----BEGIN ... PRIVATE KEY-----" (RFC 7468, and OpenSSH's and PGP's). With the key's own bytes
// or the end of the line behind it, it is one; in the middle of code it is a mention.
std::optional<SecretMatch> PrivateKeyAt(std::string_view line, size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  if (!line.substr(at).starts_with(kBegin)) return std::nullopt;
  std::string_view label = line.substr(at + kBegin.size(), 64);
  size_t dashes = label.find("-----");
  if (dashes == std::string_view::npos) return std::nullopt;
  label = label.substr(0, dashes);
  if (!label.ends_with("PRIVATE KEY") && !label.ends_with("PRIVATE KEY BLOCK")) return std::nullopt;
  size_t end = at + kBegin.size() + dashes + 5;
  std::string_view rest = line.substr(end);
  // Searched from the front: many headers before much space must not make this quadratic.
  size_t text = rest.find_first_not_of(" \t\r");
  bool ends_line = text == std::string_view::npos || rest[text] == '\n';
  std::string_view body = rest.substr(0, 40);
  size_t skip = 0;  // `\n`, `\\n`, a space: whatever stands for the line's end.
  while (skip < body.size() && skip < 4 && (body[skip] == '\\' || body[skip] == ' ')) ++skip;
  if (skip > 0 && skip < body.size() && (body[skip] == 'n' || body[skip] == 'r')) ++skip;
  bool has_body = body.size() >= skip + 20 &&
                  std::all_of(body.begin() + static_cast<std::ptrdiff_t>(skip),
                              body.begin() + static_cast<std::ptrdiff_t>(skip) + 20, IsBase64);
  return SecretMatch{at, end - at, "a private key", "-----BEGIN", ends_line || has_body};
}

}  // namespace

std::vector<SecretMatch> FindSecrets(std::string_view line) {
  std::vector<SecretMatch> found;
  size_t web_token_from = 0;
  for (size_t at = 0; at < line.size();) {
    Attempt attempt = TokenAt(line, at);
    char c = line[at];
    if (c == 'e' && at >= web_token_from && codec::AtWordBorder(line, at)) {
      attempt = WebTokenAt(line, at);
      web_token_from = at + attempt.skip;
      if (!attempt.match.has_value()) attempt.skip = 1;  // Another form may hide in that part.
    }
    if (c == '-') attempt.match = PrivateKeyAt(line, at);
    at += attempt.match.has_value() ? attempt.match->length : attempt.skip;
    if (attempt.match.has_value()) found.push_back(std::move(*attempt.match));
  }
  // An assignment says less than a form: only where no form matched.
  for (SecretMatch& assigned : FindAssignedSecrets(line)) {
    bool known = std::any_of(found.begin(), found.end(), [&](const SecretMatch& other) {
      return assigned.at < other.at + other.length && other.at < assigned.at + assigned.length;
    });
    if (!known) found.push_back(std::move(assigned));
  }
  std::sort(found.begin(), found.end(),
            [](const SecretMatch& a, const SecretMatch& b) { return a.at < b.at; });
  return found;
}

}  // namespace change
