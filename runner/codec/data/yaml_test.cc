// SPDX-License-Identifier: Apache-2.0
#include "codec/data/yaml.h"

#include <catch2/catch.hpp>

#include "codec/text/utf8.h"

namespace codec {
namespace {

std::string ErrorOf(std::string_view text, const YamlLimits& limits = {}) {
  Result<YamlNode> node = ParseYaml(text, "p.yml", limits);
  return node.ok() ? "accepted" : node.error().what;
}

TEST_CASE("ParseYaml knows where everything stands") {
  YamlNode root = ParseYaml("a: 1\nlist:\n  - x\n  - {b: 'c'}\n", "p.yml").value();
  REQUIRE(root.kind == YamlKind::kMapping);
  REQUIRE(root.entries.size() == 2);
  CHECK(root.entries[1].at.line == 2);
  CHECK(root.entries[1].at.column == 1);
  const YamlNode* list = root.Find("list");
  REQUIRE(list != nullptr);
  REQUIRE(list->items.size() == 2);
  CHECK(list->items[0].at.line == 3);
  CHECK(list->items[0].at.column == 5);
  const YamlNode* quoted = list->items[1].Find("b");
  REQUIRE(quoted != nullptr);
  CHECK(quoted->text == "c");
  CHECK(quoted->quoted);
  CHECK(root.Find("nothing") == nullptr);
}

TEST_CASE("ParseYaml refuses a key that appears twice") {
  CHECK(ErrorOf("a: 1\nb: 2\na: 3\n") == "p.yml:3:1: error: 'a' appears twice");
}

TEST_CASE("ParseYaml refuses anchors, aliases, tags and collections as keys") {
  CHECK(ErrorOf("a: &x 1\nb: *x\n").find("anchors are not supported") != std::string::npos);
  CHECK(ErrorOf("a: !!python/object x\n").find("tags are not supported") != std::string::npos);
  CHECK(ErrorOf("? [a, b]\n: c\n").find("a key must be text") != std::string::npos);
  CHECK(ErrorOf("? {a: b}\n: c\n").find("a key must be text") != std::string::npos);
  CHECK(ErrorOf("~: c\n").find("a key must be text") != std::string::npos);
}

TEST_CASE("ParseYaml refuses a second document") {
  CHECK(ErrorOf("a: 1\n---\nb: 2\n").find("a second document") != std::string::npos);
}

TEST_CASE("ParseYaml keeps its bounds") {
  YamlLimits limits{64, 5, 3};
  CHECK(ErrorOf(std::string(65, '#'), limits) == "p.yml: error: larger than 64 bytes");
  CHECK(ErrorOf("[1,2,3,4,5,6]", limits).find("more than 5 values") != std::string::npos);
  CHECK(ErrorOf("[[[[1]]]]", limits).find("nested deeper than 3 levels") != std::string::npos);
  CHECK(ErrorOf("[[[1]]]", limits) == "accepted");
  CHECK(ErrorOf(std::string(100000, '[')) != "accepted");
  CHECK(ErrorOf(std::string(50000, '{')) != "accepted");
}

TEST_CASE("ParseYaml refuses a NUL in a text, unless it is asked for") {
  constexpr std::string_view kText = "a: \"b\\0c\"\n";
  Result<YamlNode> refused = ParseYaml(kText, "f.yml");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().what == "f.yml:1:4: error: a text may not have a NUL in it");
  Result<YamlNode> taken = ParseYaml(kText, "f.yml", {.nul = true});
  REQUIRE(taken.ok());
  CHECK(taken.value().entries.at(0).value.text == std::string("b\0c", 3));
}

TEST_CASE("ParseYaml names the place of a syntax error") {
  CHECK(ErrorOf("a: [1, 2\nb: 3\n").starts_with("p.yml:"));
  CHECK(ErrorOf("a:\n\t- b\n") != "accepted");
  CHECK(ErrorOf("a: 'x") != "accepted");
  CHECK(ErrorOf("a: x\xFF\n") == "p.yml:1:5: error: not UTF-8");
  CHECK(ErrorOf(std::string_view("a: x\ny\0", 7)) == "p.yml:2:2: error: a zero byte");
}

TEST_CASE("ParseYaml reads an empty file as nothing") {
  CHECK(ParseYaml("", "p.yml").value().kind == YamlKind::kNull);
  CHECK(ParseYaml("# only a comment\n", "p.yml").value().kind == YamlKind::kNull);
}

TEST_CASE("Scalars are what YAML's core schema says") {
  YamlNode root = ParseYaml("[true, 'true', yes, 443, '443', -1, 0x1f, 1e3]", "p.yml").value();
  CHECK(YamlBool(root.items[0]) == true);
  CHECK_FALSE(YamlBool(root.items[1]).has_value());
  CHECK_FALSE(YamlBool(root.items[2]).has_value());
  CHECK(YamlUnsigned(root.items[3]) == 443U);
  for (size_t i = 4; i < 8; ++i) CHECK_FALSE(YamlUnsigned(root.items[i]).has_value());
}

TEST_CASE("FindInvalidUtf8 finds overlong forms, surrogates and cut sequences") {
  constexpr size_t kNone = std::string_view::npos;
  CHECK(FindInvalidUtf8("caf\xC3\xA9 \xF0\x9F\x98\x80") == kNone);
  CHECK(FindInvalidUtf8("a\xC0\xAF") == 1);
  CHECK(FindInvalidUtf8("\xE0\x80\x80") == 0);
  CHECK(FindInvalidUtf8("\xED\xA0\x80") == 0);
  CHECK(FindInvalidUtf8("\xF4\x90\x80\x80") == 0);
  CHECK(FindInvalidUtf8("ab\xE2\x82") == 2);
  CHECK(FindInvalidUtf8("\x80") == 0);
}

}  // namespace
}  // namespace codec
