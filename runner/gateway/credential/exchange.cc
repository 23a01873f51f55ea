// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/exchange.h"

#include <time.h>

#include <algorithm>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/percent.h"
#include "gateway/credential/limits.h"

namespace gateway {
namespace {

constexpr std::string_view kSubject = "${subject}";
constexpr std::string_view kToken = "${token}";
constexpr size_t kCodeBytesMax = 64;
constexpr size_t kFactBytesMax = 300;

SecretString Fill(std::string_view text, std::string_view subject, std::string_view token) {
  SecretString out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kSubject)) {
      out.append(subject);
      at += kSubject.size();
    } else if (rest.starts_with(kToken)) {
      out.append(token);
      at += kToken.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

// A word that names an error; empty for anything else, which may be a part of what was sent.
std::string CodeIn(std::string text) {
  auto plain = [](char c) { return ascii::IsAlphanumeric(c) || c == '_' || c == '-'; };
  bool good = text.size() <= kCodeBytesMax && std::all_of(text.begin(), text.end(), plain);
  return good ? text : std::string();
}

void AddCode(std::string code, std::string* codes) {
  if (!code.empty()) codes->append(" ").append(code);
}

// RFC 6749, 5.2, has a short code; others an object with `status`, `type` or `code`. Entra's own
// code begins the description.
std::string ErrorCodes(const codec::Json& json) {
  std::string codes;
  AddCode(CodeIn(json.StringAt("error")), &codes);
  if (const codec::Json* error = json.Find("error"); error != nullptr && error->object()) {
    for (const char* member : {"status", "type", "code"}) {
      AddCode(CodeIn(error->StringAt(member)), &codes);
    }
  }
  const std::string description = json.StringAt("error_description");
  if (description.starts_with("AADSTS")) {
    AddCode(CodeIn(description.substr(0, description.find(':'))), &codes);
  }
  return codes;
}

Error Refused(int status, const std::string& codes) {
  const bool passing = status == 429 || status >= 500;
  const bool refused = status >= 400 && !passing;
  return Error{passing   ? Code::kTemporary
               : refused ? Code::kRefused
                         : Code::kInvalid,
               "the token service responded with " + std::to_string(status) + codes};
}

// The text of the first such element; empty without one. What is looked for has no markup in it.
std::string Element(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">";
  const std::string close = "</" + std::string(name) + ">";
  const size_t at = xml.find(open);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = xml.substr(at + open.size());
  const size_t end = rest.find(close);
  if (end == std::string_view::npos || rest.substr(0, end).find('<') != std::string_view::npos) {
    return {};
  }
  return std::string(rest.substr(0, end));
}

// "2026-11-09T13:34:41Z", in seconds since 1970; 0 for anything else.
int64_t ParseUtc(const std::string& text) {
  tm time{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (end == nullptr || (*end != 'Z' && *end != '.')) return 0;
  return int64_t{::timegm(&time)};
}

std::chrono::seconds Sensible(int64_t seconds) {
  const std::chrono::seconds lifetime(seconds);
  return lifetime.count() > 0 && lifetime <= kTokenLifetimeMax ? lifetime : kTokenLifetime;
}

std::string Shown(std::string text) {
  if (text.size() > kFactBytesMax) text.resize(kFactBytesMax);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return ascii::IsControl(c); }, ' ');
  return text;
}

}  // namespace

OwnRequest NewFormRequest(const std::string& url,
                          const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
  OwnRequest request{
      "POST",
      url,
      {{"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "application/json"}},
      {}};
  for (const auto& [name, value] : pairs) {
    request.body.append(request.body.empty() ? "" : "&").append(name).append("=");
    request.body.append(codec::PercentEncode(value));
  }
  return request;
}

OwnRequest SubjectRequest(const TokenGrant& grant) {
  OwnRequest request{"GET", grant.subject_url, {{"Accept", "application/json"}}, ""};
  if (!grant.subject_auth.empty()) {
    request.fields.push_back({"Authorization", std::string(grant.subject_auth.reveal())});
  }
  return request;
}

Result<Secret> ParseSubject(const TokenGrant& grant, int status, std::string_view body) {
  if (status != 200) return Invalid("the subject token was rejected: " + std::to_string(status));
  if (grant.subject_field.empty()) {
    body = body.substr(0, body.find_last_not_of(" \t\r\n") + 1);
    if (body.empty()) return Invalid("the subject token is empty");
    return Secret(body);
  }
  Result<codec::Json> json = codec::ParseJson(body, {.bytes_max = kTokenAnswerBytesMax});
  if (!json.ok()) return Invalid("the subject token's source did not return JSON");
  SecretString token = json.value().StringAt(grant.subject_field);
  if (token.empty()) return Invalid("no " + grant.subject_field);
  return Secret(token);
}

OwnRequest StepRequest(const ExchangeStep& step, std::string_view subject, std::string_view token) {
  OwnRequest request;
  if (step.json) {
    codec::Json body = codec::Json::EmptyObject();
    for (const ExchangeStep::Field& field : step.fields) {
      if (field.list) {
        body.Set(field.name, codec::Json::FromStrings(field.values));
      } else {
        body.Set(field.name, std::string(Fill(field.values.front(), subject, token)));
      }
    }
    request = {"POST",
               step.url,
               {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
               codec::RenderJsonLine(body)};
  } else {
    std::vector<SecretString> values;
    for (const ExchangeStep::Field& field : step.fields) {
      values.push_back(Fill(field.values.front(), subject, token));
    }
    std::vector<std::pair<std::string_view, std::string_view>> pairs;
    for (size_t i = 0; i < values.size(); ++i) pairs.emplace_back(step.fields[i].name, values[i]);
    request = NewFormRequest(step.url, pairs);
  }
  for (const auto& [name, value] : step.headers) {
    request.fields.push_back({name, std::string(Fill(value, subject, token))});
  }
  return request;
}

Result<AccessToken> ParseToken(int status, std::string_view body) {
  Result<codec::Json> parsed = codec::ParseJson(body, {.bytes_max = kTokenAnswerBytesMax});
  if (status < 200 || status > 299) {
    return Refused(status, parsed.ok() ? ErrorCodes(parsed.value()) : std::string());
  }
  if (!parsed.ok()) return Invalid("the token service did not return JSON");
  const codec::Json& json = parsed.value();
  SecretString value = json.StringAt("access_token");
  if (value.empty()) value = json.StringAt("accessToken");
  if (value.empty()) return Invalid("the token service did not return a token");
  AccessToken token;
  token.values.emplace_back(value);
  token.lifetime = Sensible(json.IntegerAt("expires_in", 0));
  return token;
}

Result<AccessToken> ParseAwsSession(int status, std::string_view body, int64_t now) {
  if (status < 200 || status > 299) {
    std::string codes;
    AddCode(CodeIn(Element(body, "Code")), &codes);
    return Refused(status, codes);
  }
  AccessToken token;
  for (const char* name : {"AccessKeyId", "SecretAccessKey", "SessionToken"}) {
    SecretString value = Element(body, name);
    if (value.empty() || value.find('&') != std::string::npos) {
      return Invalid(std::string("the token service did not return ") + name);
    }
    token.values.emplace_back(value);
  }
  token.lifetime = Sensible(ParseUtc(Element(body, "Expiration")) - now);
  return token;
}

JwtFacts ReadJwt(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return {};
  const std::string_view rest = token.substr(first + 1);
  std::optional<std::string> payload = codec::DecodeBase64Url(rest.substr(0, rest.find('.')));
  if (!payload) return {};
  Result<codec::Json> json = codec::ParseJson(*payload, {.bytes_max = kTokenAnswerBytesMax});
  if (!json.ok() || json.value().object() == nullptr) return {};
  JwtFacts facts;
  facts.issuer = Shown(json.value().StringAt("iss"));
  facts.subject = Shown(json.value().StringAt("sub"));
  facts.audience = Shown(json.value().StringAt("aud"));
  const codec::Json* several = json.value().Find("aud");
  if (several != nullptr && several->array() != nullptr && !several->array()->empty() &&
      several->array()->front().string() != nullptr) {
    facts.audience = Shown(*several->array()->front().string());
  }
  facts.expires = json.value().IntegerAt("exp", 0);
  return facts;
}

std::string DescribeJwt(const JwtFacts& facts, int64_t now) {
  std::string out;
  for (const auto& [name, value] :
       {std::pair("issuer", &facts.issuer), std::pair("subject", &facts.subject),
        std::pair("audience", &facts.audience)}) {
    if (!value->empty()) out += (out.empty() ? "" : ", ") + (name + (" " + *value));
  }
  if (facts.expires == 0) return out;
  const int64_t left = facts.expires - now;
  return out + (out.empty() ? "" : ", ") +
         (left > 0 ? "expires in " + std::to_string(left) + " s"
                   : "expired " + std::to_string(-left) + " s ago");
}

}  // namespace gateway
