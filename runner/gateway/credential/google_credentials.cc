// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/google_credentials.h"

#include "codec/data/json.h"
#include "codec/data/jwt.h"
#include "codec/text/base64.h"
#include "gateway/credential/limits.h"

namespace gateway {
namespace {

constexpr std::string_view kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr std::string_view kTokenUrl = "https://oauth2.googleapis.com/token";

Error Invalid(std::string what) {
  return Error{Code::kInvalid, "Google credentials: " + std::move(what)};
}

Result<std::string> Url(const codec::Json& json, std::string_view member,
                        std::string_view fallback) {
  std::string url = json.StringAt(member);
  if (url.empty()) url = fallback;
  if (!url.starts_with("https://")) return Invalid(std::string(member) + " is not an https URL");
  return url;
}

Result<Secret> Needed(const codec::Json& json, std::string_view member) {
  SecretString value = json.StringAt(member);
  if (value.empty()) return Invalid("no " + std::string(member));
  return Secret(value);
}

Status ReadServiceAccount(const codec::Json& json, TokenGrant* grant) {
  grant->kind = TokenGrant::Kind::kServiceAccount;
  grant->identity = json.StringAt("client_email");
  grant->key_id = json.StringAt("private_key_id");
  if (grant->identity.empty()) return Invalid("no client_email");
  grant->token_url = TRY(Url(json, "token_uri", kTokenUrl));
  grant->key = TRY(Needed(json, "private_key"));
  return Ok();
}

Status ReadUser(const codec::Json& json, TokenGrant* grant) {
  grant->kind = TokenGrant::Kind::kRefreshToken;
  grant->identity = json.StringAt("client_id");
  grant->token_url = TRY(Url(json, "token_uri", kTokenUrl));
  grant->client_secret = TRY(Needed(json, "client_secret"));
  grant->key = TRY(Needed(json, "refresh_token"));
  return Ok();
}

// `credential_source`: where the subject token comes from.
Status ReadSource(const codec::Json& source, const FileReader& read, TokenGrant* grant) {
  const codec::Json* format = source.Find("format");
  if (format != nullptr && format->StringAt("type") == "json") {
    grant->subject_field = format->StringAt("subject_token_field_name");
    if (grant->subject_field.empty()) return Invalid("no subject_token_field_name");
  }
  if (source.Find("url") != nullptr) {
    grant->subject_url = TRY(Url(source, "url", ""));
    const codec::Json* headers = source.Find("headers");
    if (headers != nullptr && headers->object() != nullptr) {
      for (const auto& [name, value] : *headers->object()) {
        bool authorization = codec::EqualIgnoringCase(name, "authorization");
        if (authorization && value.string() != nullptr)
          grant->subject_auth = Secret(*value.string());
      }
    }
    return Ok();
  }
  grant->subject_file = source.StringAt("file");
  if (grant->subject_file.empty()) {
    return Error{Code::kUnsupported, "Google credentials: the source is neither a URL nor a file"};
  }
  SecretString text = TRY(read(grant->subject_file));
  grant->key = TRY(ParseSubject(*grant, 200, text));
  return Ok();
}

Status ReadExternal(const codec::Json& json, const FileReader& read, TokenGrant* grant) {
  grant->kind = TokenGrant::Kind::kExchange;
  const std::string audience = json.StringAt("audience");
  const std::string type = json.StringAt("subject_token_type");
  if (audience.empty() || type.empty()) return Invalid("no audience or subject_token_type");
  ExchangeStep exchange;
  exchange.url = TRY(Url(json, "token_url", ""));
  exchange.fields = {{"grant_type", {"urn:ietf:params:oauth:grant-type:token-exchange"}},
                     {"audience", {audience}},
                     {"scope", {grant->scope}},
                     {"requested_token_type", {"urn:ietf:params:oauth:token-type:access_token"}},
                     {"subject_token_type", {type}},
                     {"subject_token", {"${subject}"}}};
  grant->steps.push_back(std::move(exchange));
  if (json.Find("service_account_impersonation_url") != nullptr) {
    ExchangeStep impersonate;
    impersonate.url = TRY(Url(json, "service_account_impersonation_url", ""));
    impersonate.json = true;
    impersonate.headers = {{"Authorization", "Bearer ${token}"}};
    impersonate.fields = {{"scope", {grant->scope}, true},
                          {"lifetime", {std::to_string(kTokenLifetime.count()) + "s"}}};
    grant->steps.push_back(std::move(impersonate));
  }
  const codec::Json* source = json.Find("credential_source");
  if (source == nullptr) return Invalid("no credential_source");
  return ReadSource(*source, read, grant);
}

}  // namespace

Result<TokenGrant> ParseGoogleCredentials(std::string_view text, const FileReader& read) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Invalid("they are empty");
  text.remove_prefix(first);
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  SecretString decoded;
  if (text.front() != '{') {
    SecretString lines = std::string(text);
    std::erase_if(lines, [](char c) { return c == '\n' || c == '\r'; });
    decoded = codec::DecodeBase64(lines).value_or("");
    text = decoded;
  }
  Result<codec::Json> parsed = codec::ParseJson(text, {.bytes_max = kTokenAnswerBytesMax});
  // The parser's message may quote what it read.
  if (!parsed.ok() || parsed.value().object() == nullptr) return Invalid("not a JSON object");
  const codec::Json& json = parsed.value();
  TokenGrant grant;
  grant.scope = kScope;
  std::string type = json.StringAt("type");
  if (type == "service_account") {
    TRY(ReadServiceAccount(json, &grant));
  } else if (type == "authorized_user") {
    TRY(ReadUser(json, &grant));
  } else if (type == "external_account") {
    TRY(ReadExternal(json, read, &grant));
  } else {
    return Error{Code::kUnsupported,
                 "Google credentials: the type must be service_account, authorized_user or "
                 "external_account"};
  }
  return grant;
}

Result<OwnRequest> TokenRequest(const TokenGrant& grant, int64_t now) {
  if (grant.kind == TokenGrant::Kind::kServiceAccount) {
    codec::Json claims = codec::Json::EmptyObject();
    claims.Set("iss", grant.identity).Set("scope", grant.scope).Set("aud", grant.token_url);
    claims.Set("iat", now).Set("exp", now + int64_t{kTokenLifetime.count()});
    Result<std::string> token = codec::SignJwt(grant.key.reveal(), grant.key_id, claims);
    if (!token.ok()) return Invalid("private_key " + token.error().what);
    return NewFormRequest(grant.token_url,
                          {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
                           {"assertion", token.value()}});
  }
  ENSURE(grant.kind == TokenGrant::Kind::kRefreshToken);
  return NewFormRequest(grant.token_url, {{"grant_type", "refresh_token"},
                                          {"client_id", grant.identity},
                                          {"client_secret", grant.client_secret.reveal()},
                                          {"refresh_token", grant.key.reveal()}});
}

}  // namespace gateway
