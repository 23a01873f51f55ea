// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/credentials.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>

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
  std::string asked = sent.path;
  sent.refusal = NewCredentials().Apply({host, 443, asked, confidential},
                                        {&sent.fields, &sent.path, &sent.query});
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
  CHECK(NewCredentials().BoundTo("two.example", 443));
  CHECK_FALSE(NewCredentials().BoundTo("three.example", 443));
}

TEST_CASE("Every form of a placeholder that OpenShell gives is read") {
  std::string stable = "s" + std::string(64, 'a') + "_TOKEN";
  for (const std::string& form : {kToken, PlaceholderFor("v3_TOKEN"), PlaceholderFor(stable),
                                  std::string("OPENSHELL-RESOLVE-ENV-TOKEN"),
                                  std::string("sk-ant-OPENSHELL-RESOLVE-ENV-TOKEN")}) {
    INFO(form);
    CHECK(Send("Bearer " + form).value() == "Bearer s3cret/+");
    CHECK(Send("x", "/", "k=" + form).query == "k=s3cret%2F%2B");
  }
  CHECK(Send("x", "/bot/a.b~OPENSHELL-RESOLVE-ENV-PLAINLY").path == "/bot/plain-token_1");
}

std::vector<Secret> Values(std::string_view value) {
  std::vector<Secret> values;
  values.emplace_back(value);
  return values;
}

// A service whose provider says where its key belongs, on one port and below one path.
Credentials NewProvider() {
  BoundSecret key{"KEY", "*.model.example", Secret("the-true-key"), 443, "/v1/**", {}};
  key.placement = {"x-api-key", "", "", {"x-api-key", "authorization"}, {"key"}, {}, ""};
  key.bodies_pass = true;
  BoundSecret git{"GIT", "git.example", Secret("pass"), 0, "", {}};
  git.placement = {"authorization", "Basic", "user", {"authorization"}, {}, {}, ""};
  std::vector<BoundSecret> secrets;
  secrets.push_back(std::move(key));
  secrets.push_back(std::move(git));
  return Credentials(std::move(secrets));
}

struct ToProvider {
  codec::HttpFields fields;
  std::string path = "/v1/messages";
  std::string query;
  std::optional<CredentialRefusal> refusal;
};

ToProvider SendToProvider(codec::HttpFields fields, std::string query = "",
                          CredentialTarget target = {"eu.model.example", 443, "/v1/messages",
                                                     true}) {
  ToProvider sent{std::move(fields), std::string(target.path), std::move(query), {}};
  sent.refusal = NewProvider().Apply(target, {&sent.fields, &sent.path, &sent.query});
  return sent;
}

std::string Show(const codec::HttpFields& fields) {
  std::string text;
  for (const codec::HttpField& field : fields) text += field.name + ": " + field.value + "\n";
  return text;
}

TEST_CASE("A provider's client loses its own credentials and gets the bound one") {
  ToProvider own = SendToProvider(
      {{"Authorization", "Bearer mine"}, {"X-Api-Key", "mine"}, {"A", "b"}}, "key=mine&alt=sse");
  CHECK(Show(own.fields) == "A: b\nx-api-key: the-true-key\n");
  CHECK(own.query == "alt=sse");
  CHECK_FALSE(own.refusal.has_value());
  CHECK(Show(SendToProvider({}).fields) == "x-api-key: the-true-key\n");
}

TEST_CASE("A provider's client loses its own credentials behind the body, and gets none there") {
  codec::HttpFields trailers = {{"X-Api-Key", "mine"}, {"X-Sum", "1"}};
  NewProvider().RemoveFromTrailers({"other.example", 443, "/v1/messages", true}, &trailers);
  CHECK(trailers.size() == 2);
  NewProvider().RemoveFromTrailers({"eu.model.example", 443, "/v1/messages", true}, &trailers);
  CHECK(Show(trailers) == "X-Sum: 1\n");
}

TEST_CASE("A placeholder says where a provider's credential goes") {
  ToProvider sent =
      SendToProvider({{"Authorization", "Bearer " + PlaceholderFor("KEY")}, {"X-Api-Key", "mine"}});
  CHECK(Show(sent.fields) == "Authorization: Bearer the-true-key\n");
  CHECK(SendToProvider({{"X-Api-Key", "mine"}}, "key=" + PlaceholderFor("KEY")).query ==
        "key=the-true-key");
}

TEST_CASE("A provider's credential can be the password of Basic") {
  CHECK(Show(SendToProvider({}, "", {"git.example", 8443, "/r.git/info/refs", true}).fields) ==
        "authorization: Basic dXNlcjpwYXNz\n");
}

TEST_CASE(
    "Host, port and path bind a credential; beyond them the client is left alone and refused") {
  struct Case {
    CredentialTarget target;
    std::string_view why;
  };
  for (const Case& c : {Case{{"eu.model.example", 8443, "/v1/messages", true}, "port"},
                        Case{{"eu.model.example", 443, "/v2/messages", true}, "path"},
                        Case{{"model.example", 443, "/v1/messages", true}, "host"},
                        Case{{"a.b.model.example", 443, "/v1/messages", true}, "host"}}) {
    INFO(c.why);
    codec::HttpFields own = {{"X-Api-Key", "mine"}};
    ToProvider without = SendToProvider(own, "", c.target);
    CHECK(Show(without.fields) == "X-Api-Key: mine\n");
    CHECK_FALSE(without.refusal.has_value());
    ToProvider with = SendToProvider({{"X-Api-Key", PlaceholderFor("KEY")}}, "", c.target);
    REQUIRE(with.refusal.has_value());
    CHECK(with.refusal->status == 403);
    CHECK(with.refusal->error == "credential_endpoint_mismatch");
    CHECK(with.refusal->detail == "credential KEY is bound to another " + std::string(c.why));
  }
}

TEST_CASE("A provider's credential does not travel without TLS") {
  ToProvider sent = SendToProvider({}, "", {"eu.model.example", 443, "/v1/messages", false});
  REQUIRE(sent.refusal.has_value());
  CHECK(sent.refusal->error == "credential_endpoint_mismatch");
  CHECK(Show(sent.fields).find("the-true-key") == std::string::npos);
}

TEST_CASE("A token in the URL of a request is refused, in path and query, encoded or not") {
  const std::string token = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
  for (const auto& [path, query, kind] : std::initializer_list<std::array<std::string, 3>>{
           {"/repos/" + token, "", "github-token"},
           {"/", "a=1&t=" + token, "github-token"},
           {"/", "t=%67hp_" + token.substr(4), "github-token"},
           {"/",
            "t=sk-"
            "ant-0123456789abcdefghij",
            "anthropic-key"},
           {"/", "id=AKIAQWERTYUIOPASDFGH", "aws-key"},
           {"/", "k=-----BEGIN+RSA+PRIVATE+KEY-----", "private-key"},
           {"/-----BEGIN%20PRIVATE%20KEY-----", "", "private-key"}}) {
    INFO(path << "?" << query);
    Sent sent = Send("x", path, query);
    REQUIRE(sent.refusal.has_value());
    CHECK(sent.refusal->status == 403);
    CHECK(sent.refusal->error == "credential_in_url");
    CHECK(sent.refusal->detail == kind + " in the URL of a request");
  }
  CHECK(ErrorOf(Send("x", "/ghp_short", "t=sk-ant-x&id=AKIA")).empty());
  CHECK(ErrorOf(Send("x", "/", "X-Amz-Credential=AKIAQWERTYUIOPASDFGH%2F20261122")).empty());
}

TEST_CASE("A granted token is asked for first, used then, and asked for again when it is over") {
  std::vector<BoundSecret> secrets;
  secrets.push_back({"TOKEN", "api.example", Secret(), 443, "", {}, 0});
  Credentials credentials(std::move(secrets));
  const CredentialTarget target{"api.example", 443, "/", true};
  auto send = [&] {
    Sent sent{{{"Authorization", "Bearer " + kToken}}, "/", "", {}};
    sent.refusal = credentials.Apply(target, {&sent.fields, &sent.path, &sent.query});
    return sent;
  };
  REQUIRE(send().refusal.has_value());
  CHECK(send().refusal->grant == 0);
  credentials.SetToken(0, Values("granted"), Deadline::Never());
  CHECK(send().value() == "Bearer granted");
  CHECK(credentials.Redact("/a/granted?") == "/a/granted?");  // Too short a word to hide.
  credentials.SetToken(0, Values("granted-token"), Deadline::After(std::chrono::milliseconds(0)));
  CHECK(credentials.Redact("/a/granted-token?") == "/a/[CREDENTIAL]?");
  CHECK(send().refusal->grant == 0);
}

TEST_CASE("Bodies are searched where there are secrets, but not on their way to a model") {
  CHECK(NewProvider().SearchesBodies({"other.example", 443, "/", true}));
  CHECK_FALSE(NewProvider().SearchesBodies({"eu.model.example", 443, "/v1/messages", true}));
  CHECK_FALSE(Credentials({}).SearchesBodies({"other.example", 443, "/", true}));
}

TEST_CASE("Records show neither values nor placeholders nor tokens") {
  Credentials credentials = NewProvider();
  CHECK(credentials.Redact("/the-true-key/x") == "/[CREDENTIAL]/x");
  CHECK(credentials.Redact("/pass/" + PlaceholderFor("KEY")) == "/pass/[CREDENTIAL]");
  CHECK(NewCredentials().Redact("/s3cret%2F%2B/") == "/[CREDENTIAL]/");
  CHECK(credentials.Redact("/ghp_0123456789abcdefghijABCDEFGHIJ456789") ==
        "/[redacted:github-token]");
}

TEST_CASE("Placeholders are shown as [CREDENTIAL]") {
  CHECK(RedactPlaceholders("/bot" + kToken + "/x/" + kToken) == "/bot[CREDENTIAL]/x/[CREDENTIAL]");
  CHECK(RedactPlaceholders("/plain") == "/plain");
  CHECK(RedactPlaceholders("k=x-OPENSHELL-RESOLVE-ENV-K&") == "k=[CREDENTIAL]&");
}

TEST_CASE("A marker is found in a body however it is cut into pieces") {
  for (const std::string& marker :
       {std::string("openshell:resolve:env:"), std::string("OPENSHELL-RESOLVE-ENV-"),
        std::string("openshell%3Aresolve%3Aenv%3A")}) {
    const std::string body = std::string(100, 'r') + marker + "KEY" + std::string(50, 'e');
    for (size_t size = 1; size <= body.size(); ++size) {
      MarkerScanner scanner;
      for (size_t at = 0; at < body.size(); at += size) scanner.Feed(body.substr(at, size));
      INFO(marker << " in pieces of " << size);
      CHECK(scanner.found());
    }
  }
  MarkerScanner clean;
  CHECK_FALSE(clean.Feed("openshell:resolve:en"));
  CHECK_FALSE(clean.Feed("w: openshell resolve env"));
}

}  // namespace
}  // namespace gateway
