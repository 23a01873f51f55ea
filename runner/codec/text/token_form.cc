// SPDX-License-Identifier: Apache-2.0
#include "codec/text/token_form.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ascii.h"

namespace codec {
namespace {

using Alphabet = TokenForm::Alphabet;

bool In(Alphabet alphabet, char c) {
  switch (alphabet) {
    case Alphabet::kUpper:
      return ascii::IsUpper(c) || ascii::IsDigit(c);
    case Alphabet::kAlphanumeric:
      return ascii::IsAlphanumeric(c);
    case Alphabet::kWord:
      return ascii::IsAlphanumeric(c) || c == '_';
    case Alphabet::kDashed:
      return ascii::IsAlphanumeric(c) || c == '_' || c == '-';
  }
  return false;
}

constexpr size_t kAny = 4096;  // Also bounds how often one character is looked at.
constexpr std::string_view kGithub = "a GitHub token";
constexpr std::string_view kGitlab = "a GitLab token";
constexpr std::string_view kOpenai = "an OpenAI key";
constexpr std::string_view kAws = "an AWS access key id";
constexpr std::string_view kSlack = "a Slack token";

constexpr TokenForm kForms[] = {
    {"ghp_", Alphabet::kAlphanumeric, 36, 255, kGithub, "github-token", false},
    {"gho_", Alphabet::kAlphanumeric, 36, 255, kGithub, "github-token", false},
    {"ghu_", Alphabet::kAlphanumeric, 36, 255, kGithub, "github-token", false},
    {"ghs_", Alphabet::kWord, 36, kAny, kGithub, "github-token", false},
    {"ghr_", Alphabet::kAlphanumeric, 36, 255, kGithub, "github-token", false},
    {"github_pat_", Alphabet::kWord, 40, 255, kGithub, "github-token", false},
    {"glpat-", Alphabet::kDashed, 20, kAny, kGitlab, "gitlab-token", false},
    {"gldt-", Alphabet::kDashed, 20, kAny, kGitlab, "gitlab-token", true},
    {"glrt-", Alphabet::kDashed, 20, kAny, kGitlab, "gitlab-token", true},
    {"glptt-", Alphabet::kDashed, 20, kAny, kGitlab, "gitlab-token", true},
    {"sk-ant-", Alphabet::kDashed, 20, kAny, "an Anthropic key", "anthropic-key", false},
    {"sk-proj-", Alphabet::kDashed, 20, kAny, kOpenai, "openai-key", true},
    {"sk-svcacct-", Alphabet::kDashed, 20, kAny, kOpenai, "openai-key", true},
    {"sk-admin-", Alphabet::kDashed, 20, kAny, kOpenai, "openai-key", true},
    {"sk-", Alphabet::kAlphanumeric, 40, 64, kOpenai, "openai-key", true},
    {"AKIA", Alphabet::kUpper, 16, 16, kAws, "aws-key", true},
    {"ASIA", Alphabet::kUpper, 16, 16, kAws, "aws-key", true},
    {"xoxa-", Alphabet::kDashed, 20, kAny, kSlack, "slack-token", false},
    {"xoxb-", Alphabet::kDashed, 20, kAny, kSlack, "slack-token", false},
    {"xoxp-", Alphabet::kDashed, 20, kAny, kSlack, "slack-token", false},
    {"xoxr-", Alphabet::kDashed, 20, kAny, kSlack, "slack-token", false},
    {"xoxs-", Alphabet::kDashed, 20, kAny, kSlack, "slack-token", false},
    {"AIza", Alphabet::kDashed, 35, 35, "a Google API key", "google-key", true},
    {"npm_", Alphabet::kAlphanumeric, 36, 36, "an npm token", "npm-token", false},
};

// For each first letter of a prefix, the set of second letters, one bit for each value modulo 64.
// Other letters may have the same bit: it only says where the prefixes must be compared.
constexpr std::array<uint64_t, 256> kSeconds = [] {
  std::array<uint64_t, 256> seconds{};
  for (const TokenForm& form : kForms) {
    seconds[static_cast<unsigned char>(form.prefix[0])] |= uint64_t{1} << (form.prefix[1] & 63);
  }
  return seconds;
}();

// Returns whether a prefix may begin with these two: most of any text does not.
bool MayBegin(char first, char second) {
  return ((kSeconds[static_cast<unsigned char>(first)] >> (second & 63)) & 1) != 0;
}

size_t RunLength(std::string_view text, Alphabet alphabet, size_t bound) {
  size_t length = 0;
  while (length < text.size() && length < bound && In(alphabet, text[length])) ++length;
  return length;
}

}  // namespace

FoundToken FindTokenAt(std::string_view text, size_t at) {
  if (at + 1 >= text.size() || !MayBegin(text[at], text[at + 1])) return {};
  std::string_view here = text.substr(at);
  for (const TokenForm& form : kForms) {
    if (!here.starts_with(form.prefix)) continue;
    if (form.needs_border && !AtWordBorder(text, at)) continue;
    std::string_view rest = here.substr(form.prefix.size());
    size_t length = RunLength(rest, form.alphabet, std::min(form.rest_max + 1, kAny));
    if (length < form.rest_min || length > form.rest_max) continue;
    return {&form, form.prefix.size() + length};
  }
  return {};
}

WebToken FindWebTokenAt(std::string_view text, size_t at) {
  WebToken token;
  size_t end = at;
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && (end >= text.size() || text[end++] != '.')) return token;
    std::string_view rest = text.substr(end);
    if (part < 2 && !rest.starts_with("eyJ")) return token;
    size_t length = RunLength(rest, Alphabet::kDashed, rest.size());
    if (part == 0) token.first_part = length;
    if (length < 10) return token;
    end += length;
  }
  token.length = end - at;
  return token;
}

bool AtWordBorder(std::string_view text, size_t at) {
  if (at == 0 || !ascii::IsAlphanumeric(text[at - 1])) return true;
  if (at >= 2 && text[at - 2] == '\\') return true;
  if (at >= 3 && text[at - 3] == '%') return true;
  if (!ascii::IsUpper(text[at - 1]) && !ascii::IsLower(text[at - 1])) return false;
  size_t back = at - 1;
  size_t furthest = at > 20 ? at - 20 : 0;
  while (back > furthest && (ascii::IsDigit(text[back - 1]) || text[back - 1] == ';')) --back;
  return back > 0 && text[back - 1] == '[';
}

}  // namespace codec
