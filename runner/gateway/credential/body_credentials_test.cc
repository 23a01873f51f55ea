// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/body_credentials.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

const std::string kToken = PlaceholderFor("TOKEN");

Credentials NewCredentials() {
  std::vector<BoundSecret> secrets;
  secrets.push_back({"TOKEN", "api.example", Secret("q\"uo\\te &=+")});
  secrets.push_back({"ELSEWHERE", "two.example", Secret("second")});
  secrets.push_back({"BROKEN", "api.example", Secret("a\nb")});
  return Credentials(std::move(secrets));
}

struct Rewritten {
  std::string body;
  std::optional<CredentialRefusal> refusal;
};

Rewritten Rewrite(BodyKind kind, std::string body) {
  Rewritten done{std::move(body), {}};
  done.refusal = RewriteBody(NewCredentials(), {"api.example", 443, "/", true}, kind, &done.body);
  return done;
}

TEST_CASE("A body's kind is its content type, unless it is compressed") {
  auto kind = [](std::string type) { return KindOfBody({{"Content-Type", std::move(type)}}); };
  CHECK(kind("application/json; charset=utf-8") == BodyKind::kJson);
  CHECK(kind("Application/Vnd.Api+JSON") == BodyKind::kJson);
  CHECK(kind("application/x-www-form-urlencoded ;x=y") == BodyKind::kForm);
  CHECK(kind("text/plain") == BodyKind::kText);
  CHECK(kind("multipart/form-data; boundary=x") == BodyKind::kOther);
  CHECK(KindOfBody({}) == BodyKind::kOther);
  CHECK(KindOfBody({{"Content-Type", "text/plain"}, {"Content-Encoding", "gzip"}}) ==
        BodyKind::kOther);
  CHECK(KindOfBody({{"Content-Type", "text/plain"}, {"Content-Encoding", "identity"}}) ==
        BodyKind::kText);
  CHECK(KindOfBody({{"Content-Type", "text/plain"},
                    {"Content-Encoding", "identity"},
                    {"content_encoding", "gzip"}}) == BodyKind::kOther);
  CHECK(KindOfBody({{"Content-Type", "text/plain"}, {"Content-Type", "a/b"}}) == BodyKind::kOther);
}

TEST_CASE("JSON gets the value as JSON writes it, wherever in a string the placeholder stands") {
  CHECK(Rewrite(BodyKind::kJson, R"({"a": [")" + kToken + R"("], "n": 1.50})").body ==
        R"({"a": ["q\"uo\\te &=+"], "n": 1.50})");
  CHECK(Rewrite(BodyKind::kJson, R"({"a": "Bearer )" + kToken + R"( x"})").body ==
        R"({"a": "Bearer q\"uo\\te &=+ x"})");
  CHECK(Rewrite(BodyKind::kJson, R"(["openshell\u003aresolve:env:TOKEN"])").body ==
        R"(["q\"uo\\te &=+"])");
  // The n of the escape is not part of an alias's prefix.
  CHECK(Rewrite(BodyKind::kJson, R"(["\nOPENSHELL-RESOLVE-ENV-TOKEN"])").body ==
        R"(["\nq\"uo\\te &=+"])");
  CHECK(Rewrite(BodyKind::kJson, R"({"plain\u0041": "\\"})").body == R"({"plain\u0041": "\\"})");
}

TEST_CASE("A form gets the value encoded, and keeps the rest as it was") {
  CHECK(Rewrite(BodyKind::kForm, "a=%41&t=openshell%3Aresolve%3Aenv%3ATOKEN&b=c+d&e").body ==
        "a=%41&t=q%22uo%5Cte%20%26%3D%2B&b=c+d&e");
  CHECK(Rewrite(BodyKind::kForm, "t=" + kToken).body == "t=q%22uo%5Cte%20%26%3D%2B");
}

TEST_CASE("Text gets the value as it is") {
  CHECK(Rewrite(BodyKind::kText, "key: " + kToken + "\n").body == "key: q\"uo\\te &=+\n");
}

TEST_CASE("A placeholder that cannot be replaced in a body is refused") {
  struct Case {
    BodyKind kind;
    std::string body;
    std::string_view error;
  };
  for (const Case& c : {
           Case{BodyKind::kText, PlaceholderFor("ELSEWHERE"), "credential_endpoint_mismatch"},
           Case{BodyKind::kText, PlaceholderFor("NOBODY"), "credential_unavailable"},
           Case{BodyKind::kText, PlaceholderFor("BROKEN"), "credential_unavailable"},
           Case{BodyKind::kText, PlaceholderFor("") + " ", "credential_unavailable"},
           Case{BodyKind::kText, "\xff" + kToken, "credential_unavailable"},
           Case{BodyKind::kOther, "x" + kToken, "credential_unavailable"},
           Case{BodyKind::kJson, "{\"a\": \"" + kToken, "credential_unavailable"},
       }) {
    INFO(c.body);
    Rewritten done = Rewrite(c.kind, c.body);
    REQUIRE(done.refusal.has_value());
    CHECK(done.refusal->error == c.error);
    CHECK(done.refusal->status == (c.error == "credential_unavailable" ? 500 : 403));
  }
  CHECK_FALSE(Rewrite(BodyKind::kOther, "nothing of the kind").refusal.has_value());
}

TEST_CASE("A message of a WebSocket is JSON when it looks like it") {
  Credentials credentials = NewCredentials();
  auto rewrite = [&](std::string message) {
    CHECK_FALSE(RewriteMessage(credentials, {"api.example", 443, "/", true}, &message).has_value());
    return message;
  };
  CHECK(rewrite(R"( {"t":")" + kToken + R"("})") == R"( {"t":"q\"uo\\te &=+"})");
  CHECK(rewrite("auth " + kToken) == "auth q\"uo\\te &=+");
}

TEST_CASE("A streamed body with a placeholder is refused before its end has gone out") {
  std::unique_ptr<StreamFilter> filter = NewMarkerFilter();
  CHECK(filter->keeps_length());
  std::string out;
  CHECK_FALSE(filter->Filter("begin openshell:reso", false, out).has_value());
  std::optional<OutgoingRefusal> refusal = filter->Filter("lve:env:TOKEN end", true, out);
  REQUIRE(refusal.has_value());
  CHECK(refusal->answer.status == 500);
  CHECK(refusal->engine == record::Engine::kCredentials);
  CHECK(out == "begin openshell:reso");
  std::unique_ptr<StreamFilter> clean = NewMarkerFilter();
  CHECK_FALSE(clean->Filter("nothing", true, out = "").has_value());
  CHECK(out == "nothing");
}

}  // namespace
}  // namespace gateway
