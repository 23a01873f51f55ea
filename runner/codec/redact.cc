// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "codec/neutral.h"

namespace codec {
namespace {

enum class Alphabet { kAlphanumeric, kWord, kDashed, kUpper };

struct TokenForm {
  std::string_view prefix;
  Alphabet alphabet;
  size_t length_min;  // Behind the prefix.
  size_t length_max;  // More than this is something else.
  std::string_view kind;
};

constexpr size_t kAny = 4096;

// The forms their issuers document. What stands before the prefix does not matter: it may be the
// "n" of a JSON "\n" or the "m" of an ANSI colour.
constexpr std::array<TokenForm, 16> kForms = {{
    {"ghp_", Alphabet::kAlphanumeric, 36, 251, "github-token"},
    {"gho_", Alphabet::kAlphanumeric, 36, 251, "github-token"},
    {"ghu_", Alphabet::kAlphanumeric, 36, 251, "github-token"},
    {"ghs_", Alphabet::kAlphanumeric, 36, 251, "github-token"},
    {"ghr_", Alphabet::kAlphanumeric, 36, 251, "github-token"},
    {"github_pat_", Alphabet::kWord, 40, 251, "github-token"},
    {"glpat-", Alphabet::kDashed, 20, 251, "gitlab-token"},
    {"sk-ant-", Alphabet::kDashed, 20, kAny, "anthropic-key"},
    {"sk-proj-", Alphabet::kDashed, 20, kAny, "openai-key"},
    {"AKIA", Alphabet::kUpper, 16, 16, "aws-key"},
    {"ASIA", Alphabet::kUpper, 16, 16, "aws-key"},
    {"xoxa-", Alphabet::kDashed, 10, kAny, "slack-token"},
    {"xoxb-", Alphabet::kDashed, 10, kAny, "slack-token"},
    {"xoxp-", Alphabet::kDashed, 10, kAny, "slack-token"},
    {"xoxr-", Alphabet::kDashed, 10, kAny, "slack-token"},
    {"xoxs-", Alphabet::kDashed, 10, kAny, "slack-token"},
}};

bool In(Alphabet alphabet, char c) {
  const bool upper = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  const bool alphanumeric = upper || (c >= 'a' && c <= 'z');
  switch (alphabet) {
    case Alphabet::kUpper:
      return upper;
    case Alphabet::kAlphanumeric:
      return alphanumeric;
    case Alphabet::kWord:
      return alphanumeric || c == '_';
    case Alphabet::kDashed:
      return alphanumeric || c == '_' || c == '-';
  }
  return false;
}

size_t RunLength(std::string_view text, Alphabet alphabet) {
  size_t length = 0;
  while (length < text.size() && In(alphabet, text[length])) ++length;
  return length;
}

// Length of a JSON web token (RFC 7519, compact): three base64url parts, the first two JSON
// objects.
size_t JwtLength(std::string_view text) {
  size_t at = 0;
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && (at >= text.size() || text[at++] != '.')) return 0;
    const std::string_view rest = text.substr(at);
    if (part < 2 && rest.substr(0, 3) != "eyJ") return 0;
    const size_t length = RunLength(rest, Alphabet::kDashed);
    if (length < 10) return 0;
    at += length;
  }
  return at;
}

struct Match {
  size_t length = 0;
  std::string_view kind;
};

Match TokenAt(std::string_view text, char before) {
  if (text[0] == 'e') return {JwtLength(text), "jwt"};
  for (const TokenForm& form : kForms) {
    if (text.substr(0, form.prefix.size()) != form.prefix) continue;
    if (form.alphabet == Alphabet::kUpper && In(Alphabet::kUpper, before)) return {};
    const size_t length = RunLength(text.substr(form.prefix.size()), form.alphabet);
    if (length < form.length_min || length > form.length_max) return {};
    return {form.prefix.size() + length, form.kind};
  }
  return {};
}

}  // namespace

std::string RedactTokens(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool may_start = c == 'g' || c == 's' || c == 'A' || c == 'x' || c == 'e';
    const Match match =
        may_start ? TokenAt(text.substr(at), at > 0 ? text[at - 1] : '\0') : Match{};
    if (match.length > 0) {
      out += "[redacted:" + std::string(match.kind) + "]";
      at += match.length;
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

}  // namespace codec
