// SPDX-License-Identifier: Apache-2.0
#include "gateway/credentials.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

Credentials NewCredentials() {
  std::vector<BoundSecret> secrets;
  secrets.push_back({"TOKEN", "api.example", Secret("s3cret/+")});
  secrets.push_back({"TOKEN", "two.example", Secret("second")});
  secrets.push_back({"PLAINLY", "api.example", Secret("plain-token_1")});
  secrets.push_back({"BROKEN", "api.example", Secret("a\r\nX: y")});
  secrets.push_back({"NUL", "api.example", Secret(std::string_view("a\0b", 3))});
  secrets.push_back({"EMPTY", "api.example", Secret("")});
  return Credentials(std::move(secrets));
}

const std::string kToken = PlaceholderFor("TOKEN");

// One request with one header, a path and a query.
struct Sent {
  codec::HttpFields fields;
  std::string path = "/";
  std::string query;
  std::optional<CredentialRefusal> refusal;
  std::string value() const { return fields.at(0).value; }
};

Sent Send(std::string value, std::string path = "/", std::string query = "",
          std::string_view host = "api.example", bool confidential = true) {
  Sent sent{{{"Authorization", std::move(value)}}, std::move(path), std::move(query), {}};
  sent.refusal =
      NewCredentials().Apply(host, confidential, {&sent.fields, &sent.path, &sent.query});
  return sent;
}

std::string ErrorOf(const Sent& sent) {
  return sent.refusal.has_value() ? sent.refusal->error : "";
}

TEST_CASE("A placeholder is named after its variable") {
  CHECK(PlaceholderFor("NAME") == "openshell:resolve:env:NAME");
}

TEST_CASE("A placeholder becomes the secret as a whole value and behind a scheme word") {
  CHECK(Send(kToken).value() == "s3cret/+");
  CHECK(Send("Bearer " + kToken).value() == "Bearer s3cret/+");
  CHECK(Send("token " + kToken).value() == "token s3cret/+");
  CHECK_FALSE(Send("Bearer " + kToken).refusal.has_value());
}

TEST_CASE("The secret of the host at hand is taken when a name is bound to several") {
  CHECK(Send(kToken, "/", "", "two.example").value() == "second");
}

TEST_CASE("Both halves of a Basic credential can be placeholders") {
  // base64 of "user:openshell:resolve:env:TOKEN" and of "openshell:resolve:env:TOKEN:x".
  CHECK(Send("Basic dXNlcjpvcGVuc2hlbGw6cmVzb2x2ZTplbnY6VE9LRU4=").value() ==
        "Basic dXNlcjpzM2NyZXQvKw==");
  CHECK(Send("Basic b3BlbnNoZWxsOnJlc29sdmU6ZW52OlRPS0VOOng=").value() == "Basic czNjcmV0Lys6eA==");
}

TEST_CASE("A Basic credential without a placeholder stays as it is, whatever it is") {
  CHECK(Send("Basic dXNlcjpwYXNz").value() == "Basic dXNlcjpwYXNz");
  CHECK(Send("Basic not base64!").value() == "Basic not base64!");
  CHECK_FALSE(Send("Basic not base64!").refusal.has_value());
}

TEST_CASE("A placeholder in a query value is decoded, and the secret encoded") {
  CHECK(Send("x", "/", "a=1&key=openshell%3Aresolve%3Aenv%3ATOKEN&b").query ==
        "a=1&key=s3cret%2F%2B&b");
  CHECK(Send("x", "/", "key=" + kToken).query == "key=s3cret%2F%2B");
  CHECK(Send("x", "/", "a=%41&b=c+d&&e").query == "a=%41&b=c+d&&e");
}

TEST_CASE("A placeholder inside a path segment becomes the secret") {
  CHECK(Send("x", "/bot" + PlaceholderFor("PLAINLY") + "/send").path == "/botplain-token_1/send");
}

TEST_CASE("A secret that would change the path is not put into one") {
  CHECK(ErrorOf(Send("x", "/bot" + kToken)) == "credential_unavailable");
}

TEST_CASE("Another host gets no secret and the request is refused") {
  Sent sent = Send("Bearer " + kToken, "/", "", "evil.example");
  REQUIRE(sent.refusal.has_value());
  CHECK(sent.refusal->status == 403);
  CHECK(sent.refusal->error == "credential_endpoint_mismatch");
  CHECK(sent.value().find("s3cret") == std::string::npos);
  CHECK(ErrorOf(Send("x", "/", "k=" + kToken, "evil.example")) == "credential_endpoint_mismatch");
  CHECK(ErrorOf(Send("x", "/" + kToken, "", "evil.example")) == "credential_endpoint_mismatch");
  CHECK(ErrorOf(Send("x", "/", "", "api.example.evil")).empty());
}

TEST_CASE("Without TLS no secret is sent") {
  Sent sent = Send(kToken, "/", "", "api.example", false);
  CHECK(ErrorOf(sent) == "credential_endpoint_mismatch");
  CHECK(sent.value().find("s3cret") == std::string::npos);
}

TEST_CASE("Unknown, empty and unsafe credentials are unavailable") {
  for (const char* name : {"NOBODY", "BROKEN", "NUL", "EMPTY", "TOKEN2"}) {
    Sent sent = Send(PlaceholderFor(name));
    INFO(name);
    REQUIRE(sent.refusal.has_value());
    CHECK(sent.refusal->status == 500);
    CHECK(sent.refusal->error == "credential_unavailable");
    CHECK(sent.refusal->detail.find("X: y") == std::string::npos);
  }
}

TEST_CASE("A placeholder where none belongs is refused, never sent on") {
  for (const std::string& value :
       {"a=" + kToken, kToken + "x y", "Bearer  " + kToken, "Bearer " + kToken + " " + kToken,
        "Bearer x" + kToken, std::string("openshell:resolve:env:")}) {
    INFO(value);
    CHECK_FALSE(ErrorOf(Send(value)).empty());
  }
  CHECK_FALSE(ErrorOf(Send("x", "/", kToken + "=1")).empty());
  CHECK_FALSE(ErrorOf(Send("x", "/", "k=pre" + kToken)).empty());
}

TEST_CASE("BoundTo knows the hosts of the secrets") {
  CHECK(NewCredentials().BoundTo("two.example"));
  CHECK_FALSE(NewCredentials().BoundTo("three.example"));
}

TEST_CASE("Placeholders are shown as [CREDENTIAL]") {
  CHECK(RedactPlaceholders("/bot" + kToken + "/x/" + kToken) == "/bot[CREDENTIAL]/x/[CREDENTIAL]");
  CHECK(RedactPlaceholders("/plain") == "/plain");
}

}  // namespace
}  // namespace gateway
