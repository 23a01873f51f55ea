// SPDX-License-Identifier: Apache-2.0
#include "attest/signing_config.h"

#include <catch2/catch.hpp>
#include <string>

namespace attest {
namespace {

const sigstore::Instant kNow = {1'790'000'000, 0};  // In September 2026.

std::string ServiceText(const char* url, int version, const char* valid, const char* by = "a") {
  return std::string(R"({"url": ")") + url + R"(", "majorApiVersion": )" + std::to_string(version) +
         R"(, "operator": ")" + by + R"(", "validFor": {)" + valid + "}}";
}

std::string Config(const std::string& logs,
                   const std::string& selector = R"({"selector": "ANY"})") {
  return R"({"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "rekorTlogUrls": [)" +
         logs + R"(], "rekorTlogConfig": )" + selector + "}";
}

}  // namespace

TEST_CASE("The public instance has an authority, a log and timestamps") {
  Result<SigningServices> services = ChooseServices(PublicSigningConfig(), kNow);
  REQUIRE(services.ok());
  CHECK(services.value().certificate_authority == "https://fulcio.sigstore.dev");
  REQUIRE(services.value().logs.size() == 1);
  CHECK(services.value().timestamp_authorities.size() == 1);
}

TEST_CASE("Of a signing configuration, the newest service of the highest known version is used") {
  const std::string logs =
      ServiceText("https://old.test", 1, R"("start": "2020-01-01T00:00:00Z")") + "," +
      ServiceText("https://a.test/", 2, R"("start": "2025-01-01T00:00:00Z")") + "," +
      ServiceText("https://b.test", 2, R"("start": "2026-01-01T00:00:00Z")") + "," +
      ServiceText("https://c.test", 2, R"("start": "2025-06-01T00:00:00Z")", "other") + "," +
      ServiceText("https://over.test", 2,
                  R"("start": "2024-01-01T00:00:00Z", "end": "2025-01-01T00:00:00Z")", "x") +
      "," + ServiceText("https://late.test", 2, R"("start": "2999-01-01T00:00:00Z")", "y") + "," +
      ServiceText("https://next.test", 3, R"("start": "2020-01-01T00:00:00Z")", "z");
  const auto urls = [&](const std::string& selector) {
    std::string list;
    Result<SigningServices> services = ChooseServices(Config(logs, selector), kNow);
    if (!services.ok()) return services.error().what;
    for (const attest::Service& log : services.value().logs) list += log.url + " ";
    return list;
  };
  CHECK(urls(R"({"selector": "ANY"})") == "https://b.test ");
  CHECK(urls(R"({"selector": "ALL"})") == "https://b.test https://c.test ");
  CHECK(urls(R"({"selector": "EXACT", "count": 2})") == "https://b.test https://c.test ");
  CHECK(urls(R"({"selector": "EXACT", "count": 3})").find("asks for more") != std::string::npos);
  CHECK(urls(R"({"selector": "SOME"})").find("'SOME'") != std::string::npos);
}

TEST_CASE("What is not a signing configuration is not used in part") {
  CHECK_FALSE(ChooseServices("{}", kNow).ok());
  CHECK_FALSE(
      ChooseServices(Config(ServiceText("ftp://a.test", 2, R"("start": "2025-01-01T00:00:00Z")")),
                     kNow)
          .ok());
  CHECK_FALSE(ChooseServices(Config(ServiceText("https://a.test", 2, "")), kNow).ok());
  const std::string wrapped =
      R"({"signingConfig": )" +
      Config(ServiceText("https://a.test", 1, R"("start": "2025-01-01T00:00:00Z")")) + "}";
  Result<SigningServices> services = ChooseServices(wrapped, kNow);
  REQUIRE(services.ok());
  CHECK(services.value().logs.front().url == "https://a.test");
}

}  // namespace attest
