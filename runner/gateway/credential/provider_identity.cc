// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/provider_identity.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "codec/text/percent.h"
#include "gateway/credential/exchange.h"
#include "gateway/credential/provider.h"

namespace gateway {
namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

constexpr char kRequestUrl[] = "ACTIONS_ID_TOKEN_REQUEST_URL";
constexpr char kRequestToken[] = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
constexpr size_t kValueBytesMax = 500;

using Texts = std::vector<std::pair<std::string, std::string>>;

Result<Texts> ReadTexts(const std::string& file, const YamlNode& node, std::string_view what) {
  TRY(codec::CheckMapping(file, node, what));
  Texts texts;
  for (const codec::YamlEntry& entry : node.entries) {
    if (entry.value.kind != YamlKind::kScalar) {
      return codec::InvalidAt(file, entry.at, "'" + entry.key + "' must be text");
    }
    texts.emplace_back(entry.key, entry.value.text);
  }
  return texts;
}

Result<ExchangeStep::Field> ReadField(const std::string& file, const codec::YamlEntry& entry,
                                      bool json) {
  ExchangeStep::Field field{entry.key, {}, entry.value.kind == YamlKind::kSequence};
  if (field.list && !json) {
    return codec::InvalidAt(file, entry.at, "a list needs 'body: json'");
  }
  if (entry.value.kind == YamlKind::kScalar) field.values = {entry.value.text};
  for (const YamlNode& item : entry.value.items) {
    if (item.kind != YamlKind::kScalar) {
      return codec::InvalidAt(file, item.at, "'" + entry.key + "' must be a list of texts");
    }
    field.values.push_back(item.text);
  }
  if (field.values.empty()) return codec::InvalidAt(file, entry.at, "a field needs a value");
  return field;
}

Result<IdentityStep> ReadStep(const std::string& file, const YamlNode& node) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "a step", {"url", "body", "fields", "headers", "if_given", "unless_given"}));
  IdentityStep step;
  step.request.url = TRY(fields.RequiredText("url"));
  step.request.json = TRY(fields.Choice("body", {"form", "json"})) == 1U;
  step.if_given = TRY(fields.Text("if_given"));
  step.unless_given = TRY(fields.Text("unless_given"));
  if (const YamlNode* list = fields.Find("fields")) {
    TRY(codec::CheckMapping(file, *list, "fields"));
    for (const codec::YamlEntry& entry : list->entries) {
      step.request.fields.push_back(TRY(ReadField(file, entry, step.request.json)));
    }
  }
  if (const YamlNode* headers = fields.Find("headers")) {
    step.request.headers = TRY(ReadTexts(file, *headers, "headers"));
  }
  return step;
}

Result<IdentityKey> ReadKey(const std::string& file, const codec::YamlEntry& entry) {
  YamlFields fields = TRY(YamlFields::Open(file, entry.value, "a key of the identity",
                                           {"about", "form", "default", "optional"}));
  IdentityKey key;
  key.name = entry.key;
  key.about = TRY(fields.RequiredText("about"));
  key.pattern = TRY(fields.Text("form"));
  key.fallback = TRY(fields.Text("default"));
  key.optional = TRY(fields.Boolean("optional", false));
  return key;
}

const std::string* Find(const Texts& texts, std::string_view name) {
  auto found =
      std::find_if(texts.begin(), texts.end(), [&](const auto& one) { return one.first == name; });
  return found == texts.end() ? nullptr : &found->second;
}

// Puts values in place of ${KEY}; nullopt if there is none for one of them. ${subject} and ${token}
// stay, for the exchange.
std::optional<std::string> Fill(std::string_view text, const Texts& values) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('}', at);
    if (text.substr(at, 2) != "${" || end == std::string_view::npos) {
      out += text[at++];
      continue;
    }
    const std::string_view name = text.substr(at + 2, end - at - 2);
    const bool later = name == "subject" || name == "token";
    const std::string* value = later ? nullptr : Find(values, name);
    if (!later && value == nullptr) return std::nullopt;
    out += later ? std::string(text.substr(at, end + 1 - at)) : *value;
    at = end + 1;
  }
  return out;
}

// The values with what is said by default, which may name keys before it.
Texts WithFallbacks(const ProviderIdentity& identity, const IdentityValues& values) {
  Texts all = values;
  for (const IdentityKey& key : identity.keys) {
    if (Find(values, key.name) == nullptr && !key.fallback.empty()) {
      all.emplace_back(key.name, Fill(key.fallback, all).value_or(""));
    }
  }
  return all;
}

// What a step is for this run; nullopt if it is left out. A field or header whose key is not given
// is left out too.
std::optional<ExchangeStep> FillStep(const IdentityStep& step, const Texts& values) {
  if (!step.if_given.empty() && Find(values, step.if_given) == nullptr) return std::nullopt;
  if (!step.unless_given.empty() && Find(values, step.unless_given) != nullptr) return std::nullopt;
  ExchangeStep filled;
  filled.json = step.request.json;
  std::optional<std::string> url = Fill(step.request.url, values);
  if (!url) return std::nullopt;
  filled.url = std::move(*url);
  for (const ExchangeStep::Field& field : step.request.fields) {
    ExchangeStep::Field there{field.name, {}, field.list};
    for (const std::string& value : field.values) {
      if (std::optional<std::string> text = Fill(value, values)) {
        there.values.push_back(std::move(*text));
      }
    }
    if (!there.values.empty()) filled.fields.push_back(std::move(there));
  }
  for (const auto& [name, value] : step.request.headers) {
    if (std::optional<std::string> text = Fill(value, values)) {
      filled.headers.emplace_back(name, std::move(*text));
    }
  }
  return filled;
}

std::string IdVariable(const std::string& provider) {
  std::string name;
  for (char c : provider) name += c == '-' ? '_' : ascii::ToUpper(c);
  return name + "_ID_TOKEN";
}

// `all`: the values, with those that are there by default.
std::string AudienceOf(const ProviderIdentity& identity, const Texts& all) {
  const std::string* other = Find(all, kIdentityAudience);
  return other != nullptr ? *other : Fill(identity.audience, all).value_or("");
}

Error NoIdentity(const std::string& provider, const std::string& audience,
                 const ProviderHost& host) {
  Error error{Code::kSetup, "the provider " + provider + " is to use the job's identity", ""};
  if (host.variable("GITHUB_ACTIONS") == "true") {
    error.what +=
        ", and the job may not ask for one: `id-token: write` is not among its permissions";
    error.hint =
        "permissions: { contents: read, id-token: write } for the job, and in the caller "
        "of a reusable workflow";
  } else if (host.variable("GITLAB_CI").has_value()) {
    error.what += ", and " + IdVariable(provider) + " is not set";
    error.hint = "id_tokens: { " + IdVariable(provider) + ": { aud: \"" + audience + "\" } }";
  } else {
    error.what += ", and this process is not part of a job of GitHub or GitLab";
    error.hint = "token_file: PATH, for a token that this machine's system writes there";
  }
  return error;
}

}  // namespace

Result<ProviderIdentity> ParseProviderIdentity(const std::string& file, const YamlNode& node) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "identity",
      {"credentials", "header", "scheme", "adds", "keys", "audience", "steps", "once", "gives"}));
  ProviderIdentity identity;
  identity.credentials = TRY(fields.FilledTexts("credentials"));
  identity.header = TRY(fields.Text("header"));
  identity.scheme = TRY(fields.Text("scheme"));
  if (const YamlNode* adds = fields.Find("adds")) {
    identity.added_headers = TRY(ReadTexts(file, *adds, "adds"));
  }
  identity.audience = TRY(fields.RequiredText("audience"));
  identity.once = TRY(fields.Boolean("once", false));
  identity.gives_aws = TRY(fields.Choice("gives", {"token", "aws"})) == 1U;
  if (const YamlNode* keys = fields.Find("keys")) {
    TRY(codec::CheckMapping(file, *keys, "keys"));
    for (const codec::YamlEntry& entry : keys->entries) {
      identity.keys.push_back(TRY(ReadKey(file, entry)));
    }
  }
  const YamlNode* steps = TRY(fields.List("steps"));
  if (steps == nullptr || steps->items.empty() || identity.credentials.empty()) {
    return fields.Invalid("steps", "an identity needs 'credentials' and 'steps'");
  }
  for (const YamlNode& item : steps->items) identity.steps.push_back(TRY(ReadStep(file, item)));
  return identity;
}

std::vector<std::string> IdentityForm(const ProviderIdentity& identity) {
  std::vector<std::string> lines;
  for (const IdentityKey& key : identity.keys) {
    if (key.fallback.empty()) lines.push_back(key.name + ": " + key.pattern);
  }
  return lines;
}

Status CheckIdentity(const std::string& provider, const ProviderIdentity& identity,
                     const IdentityValues& values) {
  std::vector<std::string_view> known = {kIdentityAudience, kIdentityVariable, kIdentityFile};
  for (const IdentityKey& key : identity.keys) known.push_back(key.name);
  for (const auto& [name, value] : values) {
    const std::string what = "the identity for " + provider + ": ";
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string nearest = codec::NearestName(name, known);
      return Error{Code::kInvalid, what + "unknown key '" + name + "'",
                   nearest.empty() ? codec::OneOf(known) : nearest};
    }
    const bool good = !value.empty() && value.size() <= kValueBytesMax &&
                      std::none_of(value.begin(), value.end(), ascii::IsControl) &&
                      value.find("${") == std::string::npos;
    if (!good) return Error{Code::kInvalid, what + "'" + name + "' has an invalid value", ""};
    if (name == kIdentityVariable && !ascii::IsVariableName(value)) {
      return Error{Code::kInvalid, what + "'" + value + "' is not a valid variable name", ""};
    }
    if (name == kIdentityFile && value.front() != '/') {
      return Error{Code::kInvalid, what + "'token_file' must be an absolute path",
                   "token_file: /var/run/secrets/tokens/agentic-ci"};
    }
  }
  for (const IdentityKey& key : identity.keys) {
    if (key.optional || !key.fallback.empty() || Find(values, key.name) != nullptr) continue;
    return Error{Code::kInvalid,
                 "the identity for " + provider + ": '" + key.name + "' is missing: " + key.about,
                 key.name + ": " + (key.pattern.empty() ? "..." : key.pattern)};
  }
  return Ok();
}

Result<TokenGrant> PlanIdentity(const std::string& provider, const ProviderIdentity& identity,
                                const IdentityValues& values, const ProviderHost& host) {
  TRY(CheckIdentity(provider, identity, values));
  const Texts all = WithFallbacks(identity, values);
  TokenGrant grant;
  grant.kind = TokenGrant::Kind::kExchange;
  grant.provider = provider;
  grant.once = identity.once;
  grant.gives_aws = identity.gives_aws;
  for (const IdentityStep& step : identity.steps) {
    std::optional<ExchangeStep> filled = FillStep(step, all);
    if (!filled) continue;
    if (!filled->url.starts_with("https://")) {
      return Error{Code::kInvalid, "the identity for " + provider + ": its service is not https"};
    }
    grant.steps.push_back(std::move(*filled));
  }
  const std::string audience = AudienceOf(identity, all);
  const std::string* file = Find(values, kIdentityFile);
  const std::string* variable = Find(values, kIdentityVariable);
  if (file != nullptr) {
    grant.subject_file = *file;
    SecretString text = TRY(host.read(*file));
    grant.key = TRY(ParseSubject(grant, 200, text).Context(*file));
    return grant;
  }
  const std::string name = variable != nullptr ? *variable : IdVariable(provider);
  grant.key = host.secret(name);
  if (!grant.key.empty()) return grant;
  if (variable != nullptr) {
    return Error{Code::kSetup, "the identity for " + provider + ": " + name + " is not set",
                 "export " + name + "=..."};
  }
  const std::optional<std::string> url = host.variable(kRequestUrl);
  Secret right = host.secret(kRequestToken);
  if (!url || url->empty() || right.empty()) return NoIdentity(provider, audience, host);
  if (!url->starts_with("https://")) {
    return Error{Code::kSetup, std::string(kRequestUrl) + " is not an https URL", ""};
  }
  grant.subject_url = *url + (url->find('?') == std::string::npos ? "?" : "&") +
                      "audience=" + codec::PercentEncode(audience);
  grant.subject_auth = Secret(SecretString("Bearer " + std::string(right.reveal())));
  grant.subject_field = "value";
  return grant;
}

std::optional<TokenFile> TokenFileOf(const ProviderIdentity& identity,
                                     const IdentityValues& values) {
  const std::string* path = Find(values, kIdentityFile);
  if (path == nullptr) return std::nullopt;
  return TokenFile{*path, AudienceOf(identity, WithFallbacks(identity, values))};
}

std::vector<std::string> IdentityVariables(const std::string& provider,
                                           const IdentityValues& values) {
  const std::string* variable = Find(values, kIdentityVariable);
  return {variable != nullptr ? *variable : IdVariable(provider), kRequestToken};
}

}  // namespace gateway
