// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/google_credentials.h"

#include <openssl/pem.h>

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "base/openssl_owner.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/percent.h"

namespace gateway {
namespace {

Result<std::string> NoFile(const std::string& path) { return Error{Code::kNotFound, path}; }

// A key made for this run, and its text.
struct TestKey {
  KeyOwner key{::EVP_RSA_gen(2048)};
  std::string pem;
  TestKey() {
    BioOwner bio(::BIO_new(::BIO_s_mem()));
    ::PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* bytes = nullptr;
    long size = BIO_get_mem_data(bio.get(), &bytes);
    pem.assign(bytes, static_cast<size_t>(size));
  }
};

std::string ServiceAccount(const std::string& pem) {
  codec::Json json = codec::Json::EmptyObject();
  json.Set("type", "service_account")
      .Set("client_email", "a@p.example")
      .Set("private_key_id", "k1");
  json.Set("private_key", pem).Set("token_uri", "https://tokens.example/token");
  return codec::RenderJson(json);
}

// The decoded value of one key of a form.
std::string FormValue(const std::string& body, const std::string& name) {
  size_t at = ("&" + body).find("&" + name + "=");
  REQUIRE(at != std::string::npos);
  std::string rest = body.substr(at + name.size() + 1);
  return codec::FormDecode(rest.substr(0, rest.find('&')));
}

std::string DecodeUrl(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return codec::DecodeBase64(text).value();
}

TEST_CASE("A service account asks with a JWT that its key has signed") {
  TestKey key;
  for (const std::string& text :
       {ServiceAccount(key.pem), codec::EncodeBase64(ServiceAccount(key.pem))}) {
    TokenGrant grant = ParseGoogleCredentials(text + "\n", NoFile).value();
    OwnRequest request = TokenRequest(grant, 1700000000).value();
    CHECK(request.url == "https://tokens.example/token");
    CHECK(FormValue(request.body, "grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer");
    std::string token = FormValue(request.body, "assertion");
    size_t first = token.find('.');
    size_t second = token.find('.', first + 1);
    CHECK(DecodeUrl(token.substr(0, first)) == R"({"alg":"RS256","typ":"JWT","kid":"k1"})");
    CHECK(DecodeUrl(token.substr(first + 1, second - first - 1)) ==
          R"({"iss":"a@p.example","scope":"https://www.googleapis.com/auth/cloud-platform",)"
          R"("aud":"https://tokens.example/token","iat":1700000000,"exp":1700003600})");
    std::string signature = DecodeUrl(token.substr(second + 1));
    DigestContextOwner context(::EVP_MD_CTX_new());
    ::EVP_DigestVerifyInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.key.get());
    CHECK(::EVP_DigestVerify(
              context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
              signature.size(), reinterpret_cast<const unsigned char*>(token.data()), second) == 1);
  }
}

TEST_CASE("A key that is none is an error that does not quote it") {
  TokenGrant grant = ParseGoogleCredentials(ServiceAccount("s3cret-not-pem"), NoFile).value();
  Result<OwnRequest> request = TokenRequest(grant, 0);
  REQUIRE_FALSE(request.ok());
  CHECK(request.error().what.find("s3cret") == std::string::npos);
}

TEST_CASE("A user's own credentials ask with the refresh token") {
  TokenGrant grant = ParseGoogleCredentials(R"({"type": "authorized_user", "client_id": "c i",
      "client_secret": "c&s", "refresh_token": "r=t"})",
                                            NoFile)
                         .value();
  OwnRequest request = TokenRequest(grant, 0).value();
  CHECK(request.url == "https://oauth2.googleapis.com/token");
  CHECK(request.body ==
        "grant_type=refresh_token&client_id=c%20i&client_secret=c%26s&refresh_token=r%3Dt");
}

// A file as google-github-actions/auth writes it.
constexpr std::string_view kWorkload = R"({
  "type": "external_account",
  "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/g",
  "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
  "token_url": "https://sts.example/v1/token",
  "service_account_impersonation_url": "https://iam.example/v1/a:generateAccessToken",
  "credential_source": {
    "url": "https://ci.example/token?x=1&audience=aud",
    "headers": {"Authorization": "Bearer ci-token"},
    "format": {"type": "json", "subject_token_field_name": "value"}}})";

TEST_CASE("A workload identity asks its source, then the exchange, then for the account") {
  TokenGrant grant = ParseGoogleCredentials(kWorkload, NoFile).value();
  OwnRequest subject = SubjectRequest(grant);
  CHECK(subject.method == "GET");
  CHECK(subject.url == "https://ci.example/token?x=1&audience=aud");
  CHECK(codec::FindField(subject.fields, "authorization")->value == "Bearer ci-token");
  Secret token = ParseSubject(grant, 200, R"({"value": "the-jwt"})").value();
  CHECK(token.reveal() == "the-jwt");
  REQUIRE(grant.steps.size() == 2);
  OwnRequest exchange = StepRequest(grant.steps[0], token.reveal(), "");
  CHECK(exchange.url == "https://sts.example/v1/token");
  CHECK(FormValue(exchange.body, "subject_token") == "the-jwt");
  CHECK(FormValue(exchange.body, "grant_type") ==
        "urn:ietf:params:oauth:grant-type:token-exchange");
  OwnRequest impersonate = StepRequest(grant.steps[1], "", "federated");
  CHECK(codec::FindField(impersonate.fields, "authorization")->value == "Bearer federated");
  CHECK(impersonate.body ==
        R"({"scope":["https://www.googleapis.com/auth/cloud-platform"],"lifetime":"3600s"})");
}

TEST_CASE("A file's first subject token is read by whoever may read files") {
  std::string text(kWorkload);
  size_t source = text.find("{\n    \"url\"");
  text = text.substr(0, source) + R"({"file": "/run/token"}})";
  auto read = [](const std::string& path) -> Result<std::string> {
    CHECK(path == "/run/token");
    return std::string("file-jwt\n");
  };
  TokenGrant grant = ParseGoogleCredentials(text, read).value();
  CHECK(grant.subject_url.empty());
  CHECK(grant.subject_file == "/run/token");
  CHECK(grant.key.reveal() == "file-jwt");
}

TEST_CASE("Files of another kind, and addresses without TLS, are refused") {
  struct Case {
    std::string text;
    Code code;
  };
  std::string plain(kWorkload);
  plain.replace(plain.find("https://sts"), 5, "http");
  std::string program(kWorkload);
  program = program.substr(0, program.find("{\n    \"url\"")) + R"({"executable": {}}})";
  for (const Case& c : std::vector<Case>{
           {"", Code::kInvalid},
           {"s3cret", Code::kInvalid},
           {"{\"type\": \"s3cret\"}", Code::kUnsupported},
           {R"({"type": "service_account", "private_key": "s3cret"})", Code::kInvalid},
           {R"({"type": "authorized_user", "client_secret": "s3cret"})", Code::kInvalid},
           {plain, Code::kInvalid},
           {program, Code::kUnsupported},
       }) {
    INFO(c.text);
    Result<TokenGrant> grant = ParseGoogleCredentials(c.text, NoFile);
    REQUIRE_FALSE(grant.ok());
    CHECK(grant.error().code == c.code);
    CHECK(grant.error().what.find("s3cret") == std::string::npos);
  }
}

}  // namespace
}  // namespace gateway
