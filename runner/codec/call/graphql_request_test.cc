// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "codec/call/graphql.h"

namespace codec {
namespace {

using Fields = std::vector<std::string>;
using Operations = std::vector<GraphqlOperation>;

Operations Read(const std::string& method, const QueryParameters& query, const std::string& body,
                const HttpFields& fields = {}) {
  Result<Operations> operations = ParseGraphqlRequest(method, fields, query, body);
  INFO(body << ": " << (operations.ok() ? "" : operations.error().what));
  REQUIRE(operations.ok());
  return std::move(operations).value();
}

bool Refused(const std::string& method, const QueryParameters& query, const std::string& body,
             const HttpFields& fields = {}) {
  return !ParseGraphqlRequest(method, fields, query, body).ok();
}

constexpr char kPlain[] = R"({"query":"{viewer}"})";

TEST_CASE("A POST carries an object or a batch") {
  Operations one = Read("POST", {{"trace", "1"}}, kPlain);
  REQUIRE(one.size() == 1);
  CHECK(one[0].fields == Fields{"viewer"});
  Operations two = Read("POST", {}, R"([{"query":"{a}"},{"query":"mutation{b}","variables":{}}])");
  REQUIRE(two.size() == 2);
  CHECK(two[1].type == "mutation");
  CHECK(Read("POST", {}, R"({"query":"query A{a} query B{b}","operationName":"B"})")[0].fields ==
        Fields{"b"});
  CHECK(Read("POST", {}, R"({"query":"{a}","operationName":null,"extensions":null})").size() == 1);
}

TEST_CASE("A GET carries the same in its query string") {
  Operations read = Read(
      "GET", {{"query", "query A{a} query B{b}"}, {"operationName", "A"}, {"variables", "{}"}}, "");
  REQUIRE(read.size() == 1);
  CHECK(read[0].name == "A");
  CHECK(Refused("GET", {}, ""));
  CHECK(Refused("GET", {{"query", ""}}, ""));
  CHECK(Refused("GET", {{"query", "{a}"}}, kPlain));
  CHECK(Refused("GET", {{"query", "{a}"}, {"query", "{a}"}}, ""));
  CHECK(Refused("GET", {{"query", "{a}"}, {"Query", "{b}"}}, ""));
  CHECK(Refused("GET", {{"id", "a"}, {"documentId", "a"}}, ""));
  for (const char* key : {" query", "\tquery", "\nquery", "query[", "query[]", "[query", "query ",
                          " operationName", "extensions[x]", " id"}) {
    INFO(key);
    CHECK(Refused("GET", {{"query", "{a}"}, {key, "mutation{b}"}}, ""));
    CHECK(Refused("POST", {{key, "mutation{b}"}}, kPlain));
  }
  CHECK(Read("GET", {{"query", "{a}"}, {"my_query", "mutation{b}"}}, "").size() == 1);
  CHECK(Refused("GET", {{"query", "{a}"}, {"extensions", "{"}}, ""));
  CHECK(Refused("PUT", {}, kPlain));
  CHECK(Refused("get", {{"query", "{a}"}}, ""));
}

TEST_CASE("A persisted document is known by its hash or id") {
  Operations hash = Read("POST", {}, R"({"operationName":"A",
      "extensions":{"persistedQuery":{"version":1,"sha256Hash":"abc"}}})");
  REQUIRE(hash.size() == 1);
  CHECK(hash[0].type.empty());
  CHECK(hash[0].name == "A");
  CHECK(hash[0].fields.empty());
  CHECK(hash[0].persisted_id == "abc");
  for (const char* name : {"id", "documentId", "queryId"}) {
    CHECK(Read("GET", {{name, "x1"}}, "")[0].persisted_id == "x1");
    CHECK(Read("POST", {}, "{\"" + std::string(name) + "\":\"x1\"}")[0].persisted_id == "x1");
  }
  CHECK(Read("GET", {{"extensions", R"({"persistedQuery":{"sha256Hash":"abc"}})"}}, "")[0]
            .persisted_id == "abc");
  Operations both =
      Read("POST", {}, R"({"query":"{a}","extensions":{"persistedQuery":{"sha256Hash":"abc"}}})");
  CHECK(both[0].type == "query");
  CHECK(both[0].persisted_id == "abc");
  CHECK(Read("POST", {}, R"({"query":" \n","id":"x"})")[0].type.empty());
}

TEST_CASE("An envelope that servers could read in two ways is refused") {
  for (const char* body : {"",
                           "null",
                           "\"{a}\"",
                           "1",
                           "[]",
                           "{}",
                           "[[]]",
                           "[null]",
                           R"(["{a}"])",
                           R"([{"query":"{a}"},{}])",
                           R"({"query":1})",
                           R"({"query":"{a}","operationName":1})",
                           R"({"query":"{a}","id":1})",
                           R"({"query":"{a}","id":"x"})",
                           R"({"query":"{a}","documentId":"x"})",
                           R"({"query":"{a}","extensions":"x"})",
                           R"({"query":"{a}","extensions":{"persistedQuery":1}})",
                           R"({"extensions":{"persistedQuery":{"sha256Hash":1}}})",
                           R"({"query":"{a}","query":"mutation{b}"})",
                           R"({"query":"{a}","Query":"mutation{b}"})",
                           R"({"query":"{a}","OPERATIONNAME":"b"})",
                           "{\"query\":\"{a}\",\"exten\u017fions\":{}}",
                           R"({"id":"a","extensions":{"PersistedQuery":{"sha256Hash":"b"}}})",
                           R"({"id":"a","extensions":{"persistedQuery":{"sha256hash":"b"}}})",
                           R"({"id":"a","queryId":"a"})",
                           R"({"id":"a","extensions":{"persistedQuery":{"sha256Hash":"b"}}})",
                           R"({"query":"{a}"} x)",
                           R"({"query":"{a"})"}) {
    INFO(body);
    CHECK(Refused("POST", {}, body));
  }
  CHECK(Refused("POST", {{"query", "mutation{b}"}}, kPlain));
  CHECK(Refused("POST", {{"ID", "b"}}, kPlain));
}

TEST_CASE("A body that may be read as something else than JSON in UTF-8 is refused") {
  const auto type = [](const char* value) { return HttpFields{{"Content-Type", value}}; };
  for (const char* fine :
       {"application/json", "application/json; charset=utf-8", "application/JSON;charset=\"UTF-8\"",
        "application/graphql+json", "text/plain", "application/x-www-form-urlencoded"}) {
    INFO(fine);
    CHECK_FALSE(Refused("POST", {}, kPlain, type(fine)));
  }
  for (const char* bad : {"multipart/form-data; boundary=x", "Multipart/Mixed",
                          "application/json; charset=utf-7", "application/json;charset=utf-16",
                          "application/json; a=b; charset = utf-8", "application/json;charset"}) {
    INFO(bad);
    CHECK(Refused("POST", {}, kPlain, type(bad)));
  }
  CHECK(Refused("POST", {}, kPlain, {{"Content-Encoding", "gzip"}}));
  CHECK_FALSE(Refused("POST", {}, kPlain, {{"content-encoding", "Identity"}}));
  CHECK(Refused("POST", {}, kPlain, {{"Content-Type", "text/plain"}, {"Content-Type", "a/b"}}));
}

TEST_CASE("A JSON body that is a form with a document in it as well is refused") {
  const HttpFields form = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  CHECK(Refused("POST", {}, R"({"query":"{viewer}","v":"&query=mutation{b}#"})", form));
  CHECK(Refused("POST", {}, R"({"query":"{viewer}","v":"&%71uery=mutation{b}#"})", form));
  CHECK_FALSE(Refused("POST", {}, R"({"query":"{viewer}","v":"a&b=c"})", form));
  for (const char* body : {R"({"query":"{viewer}","v":"&query=mutation{b}#"})",
                           R"({"query":"{viewer}","v":";query=mutation{b};"})",
                           R"({"query":"{viewer}","v":"&query=%ff%&"})"}) {
    INFO(body);
    CHECK(Refused("POST", {}, body, form));
    // Some servers read these bodies as forms, too.
    CHECK(Refused("POST", {}, body));
    for (const char* type : {"", "; charset=utf-8", "application/json, application/x", "text/plain",
                             "application/x-www-form-urlencoded+json, a", "+json"}) {
      INFO(type);
      CHECK(Refused("POST", {}, body, {{"Content-Type", type}}));
    }
    for (const char* type :
         {"application/json", "Application/JSON ; charset=utf-8", "application/graphql+json"}) {
      CHECK_FALSE(Refused("POST", {}, body, {{"Content-Type", type}}));
    }
    CHECK(Refused("POST", {}, body, {{"Content_Type", "application/json"}}));
  }
  CHECK_FALSE(Refused("POST", {}, R"({"query":"{viewer}","v":"a&b=c"})"));
}

}  // namespace
}  // namespace codec
