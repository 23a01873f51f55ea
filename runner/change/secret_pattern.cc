// SPDX-License-Identifier: Apache-2.0
#include "change/secret_pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "change/secret_assignment.h"

namespace change {
namespace {

enum class Alphabet { kAlphanumeric, kWord, kDashed, kUpper };

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) { return IsUpper(c) || IsLower(c) || IsDigit(c); }

bool In(Alphabet alphabet, char c) {
  switch (alphabet) {
    case Alphabet::kUpper:
      return IsUpper(c) || IsDigit(c);
    case Alphabet::kAlphanumeric:
      return IsAlphanumeric(c);
    case Alphabet::kWord:
      return IsAlphanumeric(c) || c == '_';
    case Alphabet::kDashed:
      return IsAlphanumeric(c) || c == '_' || c == '-';
  }
  return false;
}

struct Form {
  std::string_view prefix;
  Alphabet alphabet;
  size_t rest_min;  // Characters behind the prefix.
  size_t rest_max;
  std::string_view kind;
  bool needs_border;  // The prefix is short or common: no letter or digit may stand before it.
};

constexpr size_t kAny = 4096;  // Also bounds how often one character is looked at.
constexpr std::string_view kGithub = "a GitHub token";
constexpr std::string_view kGitlab = "a GitLab token";
constexpr std::string_view kOpenai = "an OpenAI key";
constexpr std::string_view kAws = "an AWS access key id";
constexpr std::string_view kSlack = "a Slack token";

constexpr Form kForms[] = {
    {"ghp_", Alphabet::kAlphanumeric, 36, 255, kGithub, false},
    {"gho_", Alphabet::kAlphanumeric, 36, 255, kGithub, false},
    {"ghu_", Alphabet::kAlphanumeric, 36, 255, kGithub, false},
    {"ghs_", Alphabet::kWord, 36, kAny, kGithub, false},
    {"ghr_", Alphabet::kAlphanumeric, 36, 255, kGithub, false},
    {"github_pat_", Alphabet::kWord, 40, 255, kGithub, false},
    {"glpat-", Alphabet::kDashed, 20, kAny, kGitlab, false},
    {"gldt-", Alphabet::kDashed, 20, kAny, kGitlab, true},
    {"glrt-", Alphabet::kDashed, 20, kAny, kGitlab, true},
    {"glptt-", Alphabet::kDashed, 20, kAny, kGitlab, true},
    {"sk-ant-", Alphabet::kDashed, 20, kAny, "an Anthropic key", false},
    {"sk-proj-", Alphabet::kDashed, 20, kAny, kOpenai, true},
    {"sk-svcacct-", Alphabet::kDashed, 20, kAny, kOpenai, true},
    {"sk-admin-", Alphabet::kDashed, 20, kAny, kOpenai, true},
    {"sk-", Alphabet::kAlphanumeric, 40, 64, kOpenai, true},
    {"AKIA", Alphabet::kUpper, 16, 16, kAws, true},
    {"ASIA", Alphabet::kUpper, 16, 16, kAws, true},
    {"xoxa-", Alphabet::kDashed, 20, kAny, kSlack, false},
    {"xoxb-", Alphabet::kDashed, 20, kAny, kSlack, false},
    {"xoxp-", Alphabet::kDashed, 20, kAny, kSlack, false},
    {"xoxr-", Alphabet::kDashed, 20, kAny, kSlack, false},
    {"xoxs-", Alphabet::kDashed, 20, kAny, kSlack, false},
    {"AIza", Alphabet::kDashed, 35, 35, "a Google API key", true},
    {"npm_", Alphabet::kAlphanumeric, 36, 36, "an npm token", false},
};

size_t RunLength(std::string_view text, Alphabet alphabet, size_t bound) {
  size_t length = 0;
  while (length < text.size() && length < bound && In(alphabet, text[length])) ++length;
  return length;
}

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

// Whether a word starts at `at`: nothing, or no letter or digit, stands before it. The end of an
// escape (`\n`), of a percent code (`%3D`) or of an ANSI colour (ESC [31m) is a border too.
bool AtBorder(std::string_view line, size_t at) {
  if (at == 0 || !IsAlphanumeric(line[at - 1])) return true;
  if (at >= 2 && line[at - 2] == '\\') return true;
  if (at >= 3 && line[at - 3] == '%') return true;
  if (!IsUpper(line[at - 1]) && !IsLower(line[at - 1])) return false;
  size_t back = at - 1;
  size_t furthest = at > 20 ? at - 20 : 0;
  while (back > furthest && (IsDigit(line[back - 1]) || line[back - 1] == ';')) --back;
  return back > 0 && line[back - 1] == '[';
}

// What was looked for at one place: the match, or how many characters need no second look.
struct Attempt {
  std::optional<SecretMatch> match;
  size_t skip = 1;
};

Attempt TokenAt(std::string_view line, size_t at) {
  std::string_view text = line.substr(at);
  for (const Form& form : kForms) {
    if (!text.starts_with(form.prefix)) continue;
    if (form.needs_border && !AtBorder(line, at)) continue;
    std::string_view rest = text.substr(form.prefix.size());
    size_t length = RunLength(rest, form.alphabet, std::min(form.rest_max + 1, kAny));
    if (length < form.rest_min || length > form.rest_max) continue;
    size_t whole = form.prefix.size() + length;
    if (IsPlaceholder(rest.substr(0, length))) return {std::nullopt, whole};
    return {SecretMatch{at, whole, std::string(form.kind), std::string(form.prefix)}, whole};
  }
  return {};
}

// A JSON web token (RFC 7519, compact form): three base64url parts, the first two JSON objects.
// When it is none, no later start in the same first part is one either, so that part is skipped.
Attempt WebTokenAt(std::string_view line, size_t at) {
  size_t end = at;
  Attempt attempt;
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && (end >= line.size() || line[end++] != '.')) return attempt;
    std::string_view rest = line.substr(end);
    if (part < 2 && !rest.starts_with("eyJ")) return attempt;
    size_t length = RunLength(rest, Alphabet::kDashed, rest.size());
    if (part == 0) attempt.skip = std::max<size_t>(length, 1);
    if (length < 10) return attempt;
    end += length;
  }
  return {SecretMatch{at, end - at, "a JSON web token", "eyJ"}, end - at};
}

bool IsBase64(char c) { return IsAlphanumeric(c) || c == '+' || c == '/' || c == '='; }

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
  constexpr std::string_view kFirst = "gsAxn";  // The first letters of kForms' prefixes.
  std::vector<SecretMatch> found;
  size_t web_token_from = 0;
  for (size_t at = 0; at < line.size();) {
    Attempt attempt;
    char c = line[at];
    if (kFirst.find(c) != std::string_view::npos) attempt = TokenAt(line, at);
    if (c == 'e' && at >= web_token_from && AtBorder(line, at)) {
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
