// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/credential_steps.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

const std::string kKey = "sk-0123456789abcdef";
constexpr std::string_view kHost = "bedrock-runtime.us-east-1.amazonaws.com";

Credentials NewCredentials(bool provider_signs) {
  std::vector<BoundSecret> secrets;
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "TOKEN"}) {
    BoundSecret secret{name, std::string(kHost), Secret("value-of-it"), 443};
    if (provider_signs) secret.placement.signing_service = "bedrock";
    secrets.push_back(std::move(secret));
  }
  return Credentials(std::move(secrets));
}

std::vector<policy::Middleware> Redacting() {
  policy::Middleware middleware;
  middleware.include = {"*.us-east-1.amazonaws.com"};
  return {middleware};
}

struct Treated {
  BodyTreatment treatment;
  OutgoingRequest request{"POST", "/x", {{"Host", std::string(kHost)}}, ""};
  std::optional<OutgoingRefusal> refusal;

  // Applies the steps to a body that is all there.
  std::optional<OutgoingRefusal> Run(std::string body) {
    request.body = std::move(body);
    for (const std::unique_ptr<WholeBodyStep>& step : treatment.steps) {
      std::optional<OutgoingRefusal> refused = step->Apply(request);
      if (refused.has_value()) return refused;
    }
    return std::nullopt;
  }
};

struct Setup {
  bool provider_signs = false;
  bool redacts = false;
  bool has_body = true;
  policy::Endpoint endpoint = {};
  std::string type = "application/json";
  size_t whole_bytes_max = 0;
  codec::HttpFields fields = {};
};

// `credentials` outlive what is returned.
Treated Treat(const Credentials& credentials, const Setup& setup) {
  static const std::vector<policy::Middleware> kNone;
  static const std::vector<policy::Middleware> kRedacting = Redacting();
  Treated treated;
  treated.request.fields.push_back({"Content-Type", setup.type});
  treated.request.fields.insert(treated.request.fields.end(), setup.fields.begin(),
                                setup.fields.end());
  treated.treatment.whole_bytes_max = setup.whole_bytes_max;
  treated.refusal = AddCredentialSteps({credentials,
                                        setup.redacts ? kRedacting : kNone,
                                        &setup.endpoint,
                                        {kHost, 443, "/x", true},
                                        setup.has_body},
                                       treated.request, treated.treatment);
  return treated;
}

TEST_CASE("A body passes untouched where there are no secrets and no middleware") {
  Credentials none({});
  Treated treated = Treat(none, {});
  CHECK(treated.treatment.whole_bytes_max == 0);
  CHECK(treated.treatment.steps.empty());
  CHECK(treated.treatment.filters.empty());
}

TEST_CASE("Filters stream, or become steps where the body is read whole anyway") {
  Credentials credentials = NewCredentials(false);
  Setup setup;
  setup.redacts = true;
  CHECK(Treat(credentials, setup).treatment.filters.size() == 2);
  setup.whole_bytes_max = 1000;
  Treated whole = Treat(credentials, setup);
  CHECK(whole.treatment.whole_bytes_max == 1000);
  CHECK(whole.treatment.filters.empty());
  CHECK_FALSE(whole.Run("a " + kKey).has_value());
  CHECK(whole.request.body == "a [REDACTED]");
  CHECK(whole.Run("a " + PlaceholderFor("TOKEN")).has_value());
  setup.has_body = false;
  CHECK(Treat(credentials, setup).treatment.steps.empty());
}

TEST_CASE("Placeholders are replaced only where the endpoint says so, and keys are gone before") {
  Credentials credentials = NewCredentials(false);
  Setup setup;
  setup.redacts = true;
  setup.endpoint.request_body_credential_rewrite = true;
  Treated treated = Treat(credentials, setup);
  CHECK(treated.treatment.whole_bytes_max == size_t{256} << 10);
  CHECK_FALSE(treated.Run("[\"" + kKey + "\",\"" + PlaceholderFor("TOKEN") + "\"]").has_value());
  CHECK(treated.request.body == "[\"[REDACTED]\",\"value-of-it\"]");
  setup.type = "application/octet-stream";
  CHECK(Treat(credentials, setup).treatment.filters.size() == 2);
}

TEST_CASE("A signature is made last, by the policy's word or the provider's") {
  Credentials plain = NewCredentials(false);
  Credentials signing = NewCredentials(true);
  auto authorization = [](Treated& treated) {
    const codec::HttpField* field = codec::FindField(treated.request.fields, "authorization");
    return field == nullptr ? "" : field->value.substr(0, 16);
  };
  Treated provider = Treat(signing, {.provider_signs = true});
  CHECK(provider.treatment.whole_bytes_max == size_t{10} << 20);
  CHECK_FALSE(provider.Run("{}").has_value());
  CHECK(authorization(provider) == "AWS4-HMAC-SHA256");
  Setup setup;
  setup.endpoint.signing = policy::Signing::kSigV4NoBody;
  setup.endpoint.signing_service = "bedrock";
  Treated policy = Treat(plain, setup);
  CHECK(policy.treatment.whole_bytes_max == 0);
  CHECK(policy.treatment.filters.size() == 1);
  CHECK_FALSE(policy.Run("").has_value());
  CHECK(authorization(policy) == "AWS4-HMAC-SHA256");
  setup.has_body = false;
  setup.endpoint.signing = policy::Signing::kSigV4Body;
  Treated bodiless = Treat(plain, setup);
  CHECK(bodiless.treatment.whole_bytes_max == 0);
  CHECK_FALSE(bodiless.Run("").has_value());
  CHECK(codec::FindField(bodiless.request.fields, "x-amz-content-sha256")->value.substr(0, 8) ==
        "e3b0c442");
}

TEST_CASE("What redaction changes is hashed anew, whatever the client said of it") {
  Credentials signing = NewCredentials(true);
  Setup setup;
  setup.fields = {{"X-Amz-Content-Sha256", std::string(64, 'a')}};
  CHECK(Treat(signing, setup).treatment.whole_bytes_max == 0);
  setup.redacts = true;
  Treated treated = Treat(signing, setup);
  CHECK(treated.treatment.whole_bytes_max == size_t{10} << 20);
  CHECK_FALSE(treated.Run(kKey).has_value());
  CHECK(codec::FindField(treated.request.fields, "x-amz-content-sha256")->value !=
        std::string(64, 'a'));
}

TEST_CASE("A body that a middleware cannot look into is refused at once") {
  Credentials none({});
  Setup setup;
  setup.redacts = true;
  setup.fields = {{"Content-Encoding", "gzip"}};
  Treated treated = Treat(none, setup);
  REQUIRE(treated.refusal.has_value());
  CHECK(treated.refusal->answer.status == 503);
}

}  // namespace
}  // namespace gateway
