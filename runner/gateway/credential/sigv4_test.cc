// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/sigv4.h"

#include <array>
#include <catch2/catch.hpp>

namespace gateway {
namespace {

using policy::Signing;

// AWS's published test suite: 30 August 2015, 12:36:00.
constexpr int64_t kNow = 1440938160;
constexpr AwsKeys kKeys = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
constexpr std::string_view kEmptyHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kSession =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfI"
    "eoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0"
    "wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDry"
    "pNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

struct Vector {
  std::string_view name;
  std::string_view method;
  std::string_view path;
  std::string_view query;
  codec::HttpFields fields;  // Beside Host and X-Amz-Date.
  std::string_view signature;
};

TEST_CASE("Requests of AWS's test suite get the signatures that it publishes") {
  const std::vector<Vector> vectors = {
      {"get-vanilla",
       "GET",
       "/",
       "",
       {},
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"post-vanilla",
       "POST",
       "/",
       "",
       {},
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"get-vanilla-query-order-key-case",
       "GET",
       "/",
       "Param2=value2&Param1=value1",
       {},
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-empty-query-key",
       "GET",
       "/",
       "Param1=value1",
       {},
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-unreserved",
       "GET",
       "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
       "",
       {},
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8",
       "GET",
       "/\xe1\x88\xb4",
       "",
       {},
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-header-value-trim",
       "GET",
       "/",
       "",
       {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-header-key-duplicate",
       "GET",
       "/",
       "",
       {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}},
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"post-sts-header-before",
       "POST",
       "/",
       "",
       {{"X-Amz-Security-Token", std::string(kSession)}},
       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
  };
  for (const Vector& vector : vectors) {
    INFO(vector.name);
    SigningScope scope{"us-east-1", "service", kNow};
    SignedRequest request{vector.method, vector.path, vector.query, vector.fields,
                          std::string(kEmptyHash)};
    request.fields.push_back({"Host", "example.amazonaws.com"});
    request.fields.push_back({"X-Amz-Date", AmzDate(kNow)});
    std::string value = SignRequest(kKeys, scope, request);
    CHECK(value.substr(value.rfind('=') + 1) == vector.signature);
  }
}

TEST_CASE("The documentation's example of a signed request comes out byte by byte") {
  SignedRequest request{
      "GET", "/", "Action=ListUsers&Version=2010-05-08", {}, std::string(kEmptyHash)};
  request.fields = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
                    {"Host", "iam.amazonaws.com"},
                    {"X-Amz-Date", AmzDate(kNow)}};
  CHECK(SignRequest(kKeys, {"us-east-1", "iam", kNow}, request) ==
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

TEST_CASE("A path is encoded once more than it was sent, except for S3; a query is sorted") {
  SignedRequest request{"POST", "/model/a.b%3A0/invoke", "b=2&a=%7E&a&c=x%2fy", {}, "hash"};
  CHECK(NewCanonicalRequest(request, {"", "bedrock", 0}).text ==
        "POST\n/model/a.b%253A0/invoke\na=&a=~&b=2&c=x%2Fy\n\n\nhash");
  CHECK(NewCanonicalRequest(request, {"", "s3", 0}).text ==
        "POST\n/model/a.b%3A0/invoke\na=&a=~&b=2&c=x%2Fy\n\n\nhash");
}

TEST_CASE("The region is a label of the host's name") {
  CHECK(RegionOf("bedrock-runtime.eu-central-1.amazonaws.com") == "eu-central-1");
  CHECK(RegionOf("bucket.s3.us-gov-west-1.amazonaws.com") == "us-gov-west-1");
  CHECK(RegionOf("bedrock.cn-north-1.amazonaws.com.cn") == "cn-north-1");
  CHECK(RegionOf("iam.amazonaws.com") == "us-east-1");
  CHECK(RegionOf("us-east-1.example.com").empty());
}

int64_t Now() { return kNow; }

Credentials NewCredentials(bool session) {
  std::vector<BoundSecret> secrets;
  const std::string host = "bedrock-runtime.us-east-1.amazonaws.com";
  secrets.push_back({"AWS_ACCESS_KEY_ID", host, Secret("AKIDEXAMPLE"), 443});
  secrets.push_back({"AWS_SECRET_ACCESS_KEY", host, Secret(kKeys.secret_access_key), 443});
  if (session) secrets.push_back({"AWS_SESSION_TOKEN", host, Secret(kSession), 443});
  return Credentials(std::move(secrets));
}

struct Signed {
  OutgoingRequest request;
  std::optional<OutgoingRefusal> refusal;
  std::string Field(std::string_view name) const {
    const codec::HttpField* field = codec::FindField(request.fields, name);
    return field == nullptr ? "-" : field->value;
  }
};

Signed SignStep(SigningPlan plan, codec::HttpFields fields, bool session = false,
                std::string host = "bedrock-runtime.us-east-1.amazonaws.com") {
  Credentials credentials = NewCredentials(session);
  Signed done{{"POST", "/model/anthropic.claude-v2%3A1/invoke", std::move(fields), "{\"a\": 1}"},
              {}};
  done.request.fields.insert(done.request.fields.begin(), {"Host", host});
  done.refusal = NewSigner(credentials, {host, 443, "/model/x", true}, std::move(plan), Now)
                     ->Apply(done.request);
  return done;
}

TEST_CASE("A signed request carries what botocore 1.43 computes for the same request") {
  Signed done = SignStep({Signing::kSigV4, "bedrock", ""}, {{"Content-Type", "application/json"}});
  REQUIRE_FALSE(done.refusal.has_value());
  CHECK(done.Field("x-amz-date") == "20150830T123600Z");
  CHECK(done.Field("x-amz-content-sha256") ==
        "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310");
  CHECK(done.Field("authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, "
        "Signature=1a553f458189f21dfcd644cf9757c43a89c0542f6d8e579c978c5b66c7fa01d2");
  CHECK(done.Field("x-amz-security-token") == "-");
  Signed session = SignStep({Signing::kSigV4Body, "bedrock", "eu-west-3"},
                            {{"Content-Type", "application/json"}}, true);
  CHECK(session.Field("x-amz-security-token") == kSession);
  CHECK(session.Field("authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-3/bedrock/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "
        "Signature=6dff4ace3bfa9ae5e5fea160cb268cede763f5b346e997c4b83c02c915aab67a");
}

TEST_CASE("The payload is signed, left unsigned, or taken at the client's word") {
  const std::string theirs(64, 'a');
  CHECK(SignStep({Signing::kSigV4NoBody, "bedrock", ""}, {}).Field("x-amz-content-sha256") ==
        "UNSIGNED-PAYLOAD");
  CHECK(SignStep({Signing::kSigV4, "bedrock", ""}, {{"X-Amz-Content-SHA256", theirs}})
            .Field("x-amz-content-sha256") == theirs);
  CHECK(SignStep({Signing::kSigV4Body, "bedrock", ""}, {{"X-Amz-Content-SHA256", theirs}})
            .Field("x-amz-content-sha256") != theirs);
  const codec::HttpFields hashed = {{"X-Amz-Content-SHA256", theirs}};
  CHECK(SignedBodyBytes({Signing::kSigV4, "s", ""}, {}) == size_t{10} << 20);
  CHECK(SignedBodyBytes({Signing::kSigV4, "s", ""}, hashed) == 0);
  CHECK(SignedBodyBytes({Signing::kSigV4Body, "s", ""}, hashed) == size_t{10} << 20);
  CHECK(SignedBodyBytes({Signing::kSigV4NoBody, "s", ""}, {}) == 0);
}

TEST_CASE("What cannot be signed is refused: no key, no region, chunks signed one by one") {
  std::string key = "x-amz-content-sha256";
  Signed chunks =
      SignStep({Signing::kSigV4, "s3", ""}, {{key, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}});
  REQUIRE(chunks.refusal.has_value());
  CHECK(chunks.refusal->answer.status == 500);
  Signed elsewhere = SignStep({Signing::kSigV4, "s3", ""}, {}, false, "other.example");
  REQUIRE(elsewhere.refusal.has_value());
  CHECK(elsewhere.refusal->answer.status == 403);
  CHECK(elsewhere.Field("authorization") == "-");
}

}  // namespace
}  // namespace gateway
