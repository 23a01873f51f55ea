// SPDX-License-Identifier: Apache-2.0
#include "codec/call/graphql.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

using Fields = std::vector<std::string>;

GraphqlOperation Read(const std::string& document, const std::string& name = "") {
  Result<GraphqlOperation> operation = ParseGraphqlDocument(document, name);
  INFO(document << ": " << (operation.ok() ? "" : operation.error().what));
  REQUIRE(operation.ok());
  return std::move(operation).value();
}

std::string Fault(const std::string& document, const std::string& name = "") {
  Result<GraphqlOperation> operation = ParseGraphqlDocument(document, name);
  INFO(document);
  REQUIRE_FALSE(operation.ok());
  return operation.error().what;
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("An operation has a type, a name and root fields") {
  GraphqlOperation viewer = Read("{ viewer { login } }");
  CHECK(viewer.type == "query");
  CHECK(viewer.name.empty());
  CHECK(viewer.fields == Fields{"viewer"});
  CHECK(viewer.persisted_id.empty());

  GraphqlOperation merge = Read("mutation M($id: ID! = \"x\", $n: [Int!]! @d) @a(b: $c) { b a a }");
  CHECK(merge.type == "mutation");
  CHECK(merge.name == "M");
  CHECK(merge.fields == Fields{"a", "b"});
  CHECK(Read("subscription { s }").type == "subscription");
}

TEST_CASE("A root field is known by its name, not by its alias") {
  CHECK(Read("{ viewer: deleteAll query: x(a: 1) { viewer } }").fields == Fields{"deleteAll", "x"});
  CHECK(Read("{ __schema { types { name } } __typename }").fields ==
        Fields{"__schema", "__typename"});
}

TEST_CASE("Root fields are found through fragments and inline fragments") {
  CHECK(Read("{ ...A ... on Query { d } ... @include(if: true) { e } }"
             "fragment A on Query { a ...B }"
             "fragment B on Query @x { b ... { c } }")
            .fields == Fields{"a", "b", "c", "d", "e"});
  CHECK(Read("{ a { ...A } } fragment A on T { hidden }").fields == Fields{"a"});
  CHECK(Read("{ ...A ...A ...B } fragment A on Q { ...B } fragment B on Q { b }").fields ==
        Fields{"b"});
}

TEST_CASE("Fragments that use each other in a circle, and unknown ones, are refused") {
  CHECK(Fault("{ ...A } fragment A on Q { ...B } fragment B on Q { ...A }") ==
        "graphql document: fragment A uses itself");
  CHECK(Fault("{ ...A } fragment A on Q { a ...A }") == "graphql document: fragment A uses itself");
  CHECK(Fault("{ ...A }") == "graphql document: unknown fragment A");
  Read("{ ...A } fragment A on Q { a }");
}

TEST_CASE("Several operations need operationName, which must name one of them") {
  const std::string two = "query A { a } mutation B { b }";
  CHECK(Fault(two) == "graphql document: several operations and no operationName");
  CHECK(Fault(two, "C") == "graphql document: no operation has the name that operationName gives");
  CHECK(Read(two, "A").fields == Fields{"a"});
  CHECK(Read(two, "B").type == "mutation");
  CHECK(Fault("query A { a } mutation A { b }", "A") ==
        "graphql document: 1:26: two operations of one name");
  CHECK(Fault("{ a } { b }") == "graphql document: 1:7: two operations of one name");
  CHECK(Fault("{ ...A } fragment A on Q { a } fragment A on Q { b }") ==
        "graphql document: 1:41: two fragments of one name");
}

TEST_CASE("What is ignored hides no field, and what is a string shows none") {
  CHECK(Read("\xef\xbb\xbf{,,a # { b }\n c #\r d }").fields == Fields{"a", "c", "d"});
  CHECK(Read("{ a(x: \"} mutation { b\") c }").fields == Fields{"a", "c"});
  CHECK(Read("{ a(x: \"\"\"} \\\"\"\" \" { b\n\"\"\") c }").fields == Fields{"a", "c"});
  CHECK(Read("{ a(x: \"\\\"} { b \\u00e9\\n\") c }").fields == Fields{"a", "c"});
  CHECK(Read("{ a(x: \"\" y: [1 -2.5e+3 {k: TRUE, l: [$v]}] z: null) { b } }").fields ==
        Fields{"a"});
  CHECK(Read("{ a(x: \"\xc3\xa9\xf0\x9f\x98\x80\") # \xc3\xa9\n }").fields == Fields{"a"});
}

TEST_CASE("What is not an executable document is refused, with the place") {
  CHECK(Fault("") == "graphql document: 1:1: no operation");
  CHECK(Fault("fragment A on Q { a }") == "graphql document: 1:22: no operation");
  CHECK(Fault("{\n  a(\n}") == "graphql document: 3:1: expected a name");
  CHECK(Fault("{ a }\r\n\rb") == "graphql document: 3:1: expected an operation or a fragment");
  for (const char* document : {"{",
                               "{}",
                               "{ a",
                               "a }",
                               "{ a( }",
                               "{ a() }",
                               "{ a(b) }",
                               "{ a(b:) }",
                               "{ a { } }",
                               "query",
                               "query A",
                               "query () { a }",
                               "query ($a) { a }",
                               "query ($a: [Int) { a }",
                               "query ($a: Int = $b) { a }",
                               "type Q { a: Int }",
                               "extend type Q { a: Int }",
                               "schema { query: Q }",
                               "\"d\" type Q { a: Int }",
                               "{ ... }",
                               "{ ...on }",
                               "{ .. a }",
                               "fragment on on Q { a } { a }",
                               "fragment A Q { a } { a }",
                               "{ a: }",
                               "{ a: b: c }",
                               "{ a @ }",
                               "{ a(b: \"c\nd\") }",
                               "{ a(b: \"\\x\") }",
                               "{ a(b: \"\\u12g4\") }",
                               "{ a(b: \"\\u{1}\") }",
                               "{ a(b: \"c) }",
                               "{ a(b: \"\"\"c\"\") }",
                               "{ a(b: 01) }",
                               "{ a(b: 1x) }",
                               "{ a(b: 1.) }",
                               "{ a(b: 1.2.3) }",
                               "{ a(b: -) }",
                               "{ a(b: 1e) }",
                               "{ a ; b }",
                               "{ a & b }",
                               "{ a \x01 }",
                               "{ a # \x01\n }",
                               "{ a(b: \"\x7f\x01\") }",
                               "{ a(b: \"\xff\") }",
                               "{ \xc3\xa9 }",
                               "{ a(b: \"\"\"\x02\"\"\") }",
                               "subscribe { a }"}) {
    Fault(document);
  }
  Fault(std::string("{ a \0 }", 7));
  Fault(std::string("{ a(b: \"\\\0\") }", 14));
}

TEST_CASE("A document is bounded in depth and tokens") {
  CHECK(Read(Repeat("{a", 128) + Repeat("}", 128)).fields == Fields{"a"});
  CHECK(Fault(Repeat("{a", 129) + Repeat("}", 129)) ==
        "graphql document: 1:257: nested too deeply");
  Fault("{a(b: " + Repeat("[", 1000000));
  Fault("query ($a: " + Repeat("[", 1000000));
  CHECK(Read("{" + Repeat("a ", 19998) + "}").fields == Fields{"a"});
  CHECK(Fault("{" + Repeat("a ", 19999) + "}") == "graphql document: 1:40000: too many tokens");
}

TEST_CASE("A deep chain of fragments is followed to its end") {
  std::string document = "{ ...F0 }";
  for (int i = 0; i < 2400; ++i) {
    document += "fragment F" + std::to_string(i) + " on Q {...F" + std::to_string(i + 1) + "}";
  }
  CHECK(Read(document + "fragment F2400 on Q { last }").fields == Fields{"last"});
}

}  // namespace
}  // namespace codec
