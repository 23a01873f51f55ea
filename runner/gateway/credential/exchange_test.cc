// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/exchange.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "codec/text/base64.h"
#include "gateway/credential/provider.h"

namespace gateway {
namespace {

TEST_CASE("A token's answer is read, and a refusal's codes are told") {
  AccessToken token = ParseToken(200, R"({"access_token": "t", "expires_in": 1200})").value();
  CHECK(token.values.front().reveal() == "t");
  CHECK(token.lifetime.count() == 1200);
  for (const char* text : {R"({"accessToken": "t", "expireTime": "2030-01-01T00:00:00Z"})",
                           R"({"access_token": "t", "expires_in": 99999999})",
                           R"({"access_token": "t", "expires_in": -5})"}) {
    CHECK(ParseToken(200, text).value().lifetime.count() == 3600);
  }
  struct Case {
    int status;
    const char* body;
    Code code;
    const char* what;
  };
  for (const Case& c : {
           Case{400, R"({"error": "invalid_grant", "error_description": "x"})", Code::kRefused,
                "400 invalid_grant"},
           Case{403, R"({"error": {"status": "PERMISSION_DENIED"}})", Code::kRefused,
                "403 PERMISSION_DENIED"},
           Case{401,
                R"({"type":"error","error":{"type":"authentication_error","message":"s3cret"}})",
                Code::kRefused, "401 authentication_error"},
           Case{
               401,
               R"({"error":"invalid_client","error_description":"AADSTS700213: No s3cret record"})",
               Code::kRefused, "401 invalid_client AADSTS700213"},
           Case{400, R"({"error": "<s3cret value>"})", Code::kRefused, "400"},
           Case{429, "{}", Code::kTemporary, "429"},
           Case{503, "s3cret", Code::kTemporary, "503"},
           Case{302, "", Code::kInvalid, "302"},
       }) {
    INFO(c.body);
    Result<AccessToken> parsed = ParseToken(c.status, c.body);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code == c.code);
    CHECK(parsed.error().what == std::string("the token service responded with ") + c.what);
  }
  CHECK(CodeOf(ParseToken(200, "{}")) == Code::kInvalid);
  CHECK(CodeOf(ParseToken(200, "not json")) == Code::kInvalid);
}

TEST_CASE("A session of AWS is three values and an end") {
  const std::string good =
      "<R><C><SessionToken>s+/=</SessionToken><SecretAccessKey>k</SecretAccessKey>"
      "<Expiration>2026-11-09T13:34:41Z</Expiration><AccessKeyId>ASIA</AccessKeyId></C></R>";
  constexpr int64_t kEnd = 1794231281;
  AccessToken token = ParseAwsSession(200, good, kEnd - 900).value();
  CHECK(token.values[0].reveal() == "ASIA");
  CHECK(token.values[1].reveal() == "k");
  CHECK(token.values[2].reveal() == "s+/=");
  CHECK(token.lifetime.count() == 900);
  for (const char* cut : {"AccessKeyId", "SecretAccessKey", "SessionToken"}) {
    std::string other = good;
    other.replace(other.find(cut), 3, "Xyz");
    CHECK(CodeOf(ParseAwsSession(200, other, kEnd)) == Code::kInvalid);
  }
  CHECK(CodeOf(ParseAwsSession(200, "<AccessKeyId><b>x</b></AccessKeyId>", 0)) == Code::kInvalid);
  CHECK(ParseAwsSession(403, "<E><Code>AccessDenied</Code><Message>s3cret</Message></E>", 0)
            .error()
            .what == "the token service responded with 403 AccessDenied");
}

std::string Jwt(const std::string& claims) {
  return "e30." + codec::EncodeBase64Url(claims) + ".c2ln";
}

TEST_CASE("What a job's token says is shown, and nothing of what it is") {
  JwtFacts facts =
      ReadJwt(Jwt(R"({"iss":"https://i","sub":"repo:a/b","aud":["x","y"],"exp":1000})"));
  CHECK(DescribeJwt(facts, 900) ==
        "issuer https://i, subject repo:a/b, audience x, expires in 100 s");
  CHECK(DescribeJwt(facts, 1100) ==
        "issuer https://i, subject repo:a/b, audience x, expired 100 s ago");
  CHECK(ReadJwt(Jwt("{\"sub\":\"a\\nb\\u001b\"}")).subject == "a b ");
  CHECK(ReadJwt(Jwt(R"({"sub":")" + std::string(5000, 'x') + R"("})")).subject.size() == 300);
  for (const char* odd : {"", "opaque", ".", "..", "a.!.b", "e30.W10.x"}) {
    CHECK(DescribeJwt(ReadJwt(odd), 0).empty());
  }
}

ProviderHost HostWith(std::vector<std::pair<std::string, std::string>> variables) {
  auto find = [variables](const std::string& name) -> std::optional<std::string> {
    for (const auto& [known, value] : variables) {
      if (known == name) return value;
    }
    return std::nullopt;
  };
  ProviderHost host;
  host.variable = find;
  host.secret = [find](const std::string& name) { return Secret(find(name).value_or("")); };
  host.read = [](const std::string& path) -> Result<std::string> {
    if (path == "/run/token") return std::string("from-file\n");
    return Error{Code::kNotFound, path};
  };
  return host;
}

TEST_CASE("Where the job's token comes from, and what is left out") {
  const Provider provider = FindProvider("anthropic").value();
  const IdentityValues values = {{"federation_rule", "fdrl_1"}, {"organization", "o"}};
  auto plan = [&](IdentityValues more, std::vector<std::pair<std::string, std::string>> variables) {
    more.insert(more.begin(), values.begin(), values.end());
    return PlanIdentity("anthropic", *provider.identity, more, HostWith(std::move(variables)));
  };
  const std::string url = "https://ci.example/token?v=2";
  const auto github = std::vector<std::pair<std::string, std::string>>{
      {"ACTIONS_ID_TOKEN_REQUEST_URL", url}, {"ACTIONS_ID_TOKEN_REQUEST_TOKEN", "right"}};
  TokenGrant asked = plan({}, github).value();
  CHECK(asked.subject_url == url + "&audience=https%3A%2F%2Fapi.anthropic.com");
  CHECK(asked.subject_auth.reveal() == "Bearer right");
  CHECK(asked.once);
  CHECK(asked.steps.front().url == "https://api.anthropic.com/v1/oauth/token");
  CHECK(StepRequest(asked.steps.front(), "jwt", "").body ==
        R"({"grant_type":"urn:ietf:params:oauth:grant-type:jwt-bearer","assertion":"jwt",)"
        R"("federation_rule_id":"fdrl_1","organization_id":"o"})");
  CHECK(plan({{"audience", "other"}}, github).value().subject_url == url + "&audience=other");
  CHECK(plan({{"token_file", "/run/token"}}, github).value().key.reveal() == "from-file");
  CHECK(plan({}, {{"ANTHROPIC_ID_TOKEN", "jwt"}}).value().key.reveal() == "jwt");
  CHECK(plan({{"token_variable", "MINE"}}, {{"MINE", "m"}}).value().key.reveal() == "m");
  CHECK(CodeOf(plan({{"token_variable", "MINE"}}, github)) == Code::kSetup);
  CHECK(CodeOf(plan({}, {})) == Code::kSetup);
  CHECK(plan({}, {{"GITHUB_ACTIONS", "true"}}).error().what.find("id-token: write") !=
        std::string::npos);
  CHECK(CodeOf(plan({{"host", "http://plain.example"}}, github)) == Code::kInvalid);
  CHECK(CodeOf(plan({{"workspace", "${subject}"}}, github)) == Code::kInvalid);
  CHECK(CodeOf(plan({{"workspac", "x"}}, github)) == Code::kInvalid);
}

TEST_CASE("A region is part of the address of AWS, and no account is impersonated unasked") {
  const std::vector<std::pair<std::string, std::string>> job = {{"BEDROCK_ID_TOKEN", "jwt"},
                                                                {"VERTEX_ID_TOKEN", "jwt"}};
  const Provider bedrock = FindProvider("bedrock").value();
  TokenGrant grant = PlanIdentity("bedrock", *bedrock.identity,
                                  {{"role", "r"}, {"region", "eu-north-1"}}, HostWith(job))
                         .value();
  CHECK(grant.steps.front().url == "https://sts.eu-north-1.amazonaws.com/");
  CHECK(grant.gives_aws);
  const Provider vertex = FindProvider("vertex").value();
  IdentityValues values = {{"workload_provider", "p"}};
  // The scope that each step asks for: with an account, the first token serves the second step
  // alone.
  const auto scopes = [&] {
    std::string found;
    const TokenGrant asked =
        PlanIdentity("vertex", *vertex.identity, values, HostWith(job)).value();
    for (const ExchangeStep& step : asked.steps) {
      for (const ExchangeStep::Field& field : step.fields) {
        if (field.name != "scope") continue;
        found += field.values.front().substr(field.values.front().rfind('/'));
      }
    }
    return found;
  };
  CHECK(scopes() == "/cloud-platform");
  values.emplace_back("service_account", "a@b");
  CHECK(scopes() == "/iam/cloud-platform");
}

TEST_CASE("A mistake in a provider's identity is shown, and what has no value is not sent") {
  const auto parse = [](const std::string& step) {
    const std::string text =
        "provider: acme\nabout: A.\n"
        "credentials: [{name: ACME_KEY, from: [ACME_KEY], header: x-key}]\n"
        "endpoints: [{host: api.acme.example, port: 443}]\n"
        "identity:\n  credentials: [ACME_KEY]\n  audience: acme\n"
        "  keys: {space: {about: A space., optional: true}}\n"
        "  steps:\n    - {url: 'https://id.acme.example/', " +
        step + "}\n";
    return ParseProvider(text, "acme.yml");
  };
  const auto said = [&](const std::string& step) {
    const Result<Provider> provider = parse(step);
    return provider.ok() ? "" : provider.error().what;
  };
  CHECK(said("fields: {a: [x]}").find("error: a list needs 'body: json'") != std::string::npos);
  CHECK(said("body: json, fields: {a: [[x]]}").find("'a' must be a list of texts") !=
        std::string::npos);
  CHECK(said("body: json, fields: {a: {b: x}}").find("a field needs a value") != std::string::npos);
  const Provider acme = parse("headers: {x-space: '${space}', x-all: 'y'}, fields: {a: x}").value();
  const auto headers = [&](const IdentityValues& values) {
    return PlanIdentity("acme", *acme.identity, values, HostWith({{"ACME_ID_TOKEN", "jwt"}}))
        .value()
        .steps.front()
        .headers.size();
  };
  CHECK(headers({}) == 1);
  CHECK(headers({{"space", "s"}}) == 2);
}

}  // namespace
}  // namespace gateway
