// SPDX-License-Identifier: Apache-2.0
#include "codec/data/yaml_fields.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

const std::string kFile = "f.yml";

// Reads "key: VALUE" with `read`, and gives the value or the error.
template <typename Read>
auto With(const std::string& value, Read read, Blanks blanks = Blanks::kKept) {
  YamlNode root = ParseYaml("key: " + value + "\n", kFile).value();
  return read(YamlFields::Open(kFile, root, "a thing", {"key", "other"}, blanks).value());
}

template <typename Value>
std::string ErrorOf(const Result<Value>& result) {
  return result.ok() ? "accepted" : result.error().what;
}

std::string OpenError(std::string_view text, std::string* hint = nullptr) {
  YamlNode root = ParseYaml(text, kFile).value();
  Result<YamlFields> fields =
      YamlFields::Open(kFile, root, "a thing", {"host", "port", "filesystem_policy"});
  if (hint != nullptr && !fields.ok()) *hint = fields.error().hint;
  return ErrorOf(fields);
}

auto Text() {
  return [](const YamlFields& fields) { return fields.Text("key"); };
}
auto Texts() {
  return [](const YamlFields& fields) { return fields.Texts("key"); };
}
auto Number() {
  return [](const YamlFields& fields) { return fields.Number("key", 443, 1, 65535); };
}
auto Boolean() {
  return [](const YamlFields& fields) { return fields.Boolean("key", true); };
}
auto Choice(bool any_case) {
  return [=](const YamlFields& fields) { return fields.Choice("key", {"any", "index"}, any_case); };
}

TEST_CASE("YamlFields refuses a key that it does not know, and names the nearest one") {
  std::string hint;
  CHECK(OpenError("host: x\nport: 1\n") == "accepted");
  CHECK(OpenError("host: x\nprot: 1\n", &hint) ==
        "f.yml:2:1: error: unknown key 'prot' in a thing");
  CHECK(hint == "write 'port:'");
  CHECK(OpenError("filesystem: x\n", &hint).find("unknown key") != std::string::npos);
  CHECK(hint == "write 'filesystem_policy:'");
  CHECK(OpenError("zzzzzz: x\n", &hint).find("unknown key") != std::string::npos);
  CHECK(hint == "one of: host, port, filesystem_policy");
}

TEST_CASE("YamlFields refuses what is not a mapping") {
  CHECK(OpenError("[host]\n") == "f.yml:1:1: error: a thing must be a mapping, not a list");
  CHECK(OpenError("host\n") == "f.yml:1:1: error: a thing must be a mapping, not text");
  CHECK(OpenError("~\n") == "f.yml:1:1: error: a thing must be a mapping, not nothing");
}

TEST_CASE("YamlFields keeps blanks around text, or trims them, as it was told") {
  CHECK(With("' a '", Text()).value() == " a ");
  CHECK(With("' a '", Text(), Blanks::kTrimmed).value() == "a");
  CHECK(With("|\n  a\n", Text()).value() == "a\n");
  CHECK(With("|\n  a\n", Text(), Blanks::kTrimmed).value() == "a");
  CHECK(With("[' a ']", Texts()).value() == std::vector<std::string>{" a "});
  CHECK(With("[' a ']", Texts(), Blanks::kTrimmed).value() == std::vector<std::string>{"a"});
  CHECK(With("any", Choice(false)).value() == 0U);
  CHECK(With("' any'", Choice(false), Blanks::kTrimmed).value() == 0U);
  CHECK(ErrorOf(With("' any'", Choice(false))) ==
        "f.yml:1:6: error: ' any' is not a valid value for 'key'");
}

TEST_CASE("YamlFields takes null for no type") {
  CHECK(ErrorOf(With("~", Text())) == "f.yml:1:6: error: 'key' must be text, not nothing");
  CHECK(ErrorOf(With("~", Texts())) == "f.yml:1:6: error: 'key' must be a list, not nothing");
  CHECK(ErrorOf(With("~", Number())) == "f.yml:1:6: error: 'key' must be a number from 1 to 65535");
  CHECK(ErrorOf(With("~", Boolean())) == "f.yml:1:6: error: 'key' must be true or false");
  CHECK(ErrorOf(With("~", Choice(false))) == "f.yml:1:6: error: 'key' must be text, not nothing");
  CHECK(ErrorOf(With("[~]", Texts())) ==
        "f.yml:1:7: error: an entry of 'key' must be text, not nothing");
}

TEST_CASE("YamlFields gives the fallback for an absent key only") {
  auto absent = [](const YamlFields& fields) {
    CHECK(fields.Text("other").value().empty());
    CHECK(fields.Texts("other").value().empty());
    CHECK(fields.Number("other", 7, 1, 9).value() == 7);
    CHECK(fields.Boolean("other", true).value());
    CHECK(!fields.Choice("other", {"any"}).value().has_value());
    CHECK(fields.List("other").value() == nullptr);
    CHECK(ErrorOf(fields.RequiredText("other")) == "f.yml:1:1: error: 'other' is missing");
    return 0;
  };
  With("x", absent);
}

TEST_CASE("YamlFields reads numbers within their bounds, and no text for one") {
  CHECK(With("1", Number()).value() == 1);
  CHECK(With("65535", Number()).value() == 65535);
  for (const char* value :
       {"0", "65536", "'443'", "-1", "1.0", "0x10", "[443]", "4294967297", ""}) {
    CAPTURE(value);
    CHECK(!With(value, Number()).ok());
  }
  CHECK(!With("false", Boolean()).value());
  for (const char* value : {"'true'", "yes", "1", "[true]"}) {
    CAPTURE(value);
    CHECK(!With(value, Boolean()).ok());
  }
}

TEST_CASE("YamlFields knows the letters' case of a choice only where it was told to") {
  CHECK(With("INDEX", Choice(true)).value() == 1U);
  CHECK(!With("INDEX", Choice(false)).ok());
  CHECK(!With("'any,index'", Choice(true)).ok());
}

TEST_CASE("YamlFields refuses empty values where they must say something") {
  auto required = [](const YamlFields& fields) { return fields.RequiredText("key"); };
  auto filled = [](const YamlFields& fields) { return fields.FilledTexts("key"); };
  auto refuse = [](const YamlFields& fields) -> Result<bool> {
    TRY(fields.RefuseEmpty({"key"}));
    return true;
  };
  CHECK(With("a", required).value() == "a");
  CHECK(ErrorOf(With("''", required)) == "f.yml:1:6: error: 'key' is empty");
  CHECK(ErrorOf(With("'  '", required)) == "f.yml:1:6: error: 'key' is empty");
  CHECK(With("[a]", filled).value() == std::vector<std::string>{"a"});
  CHECK(ErrorOf(With("[a, '']", filled)) == "f.yml:1:10: error: an entry of 'key' is empty");
  CHECK(ErrorOf(With("a", refuse)) == "accepted");
  for (const char* value : {"''", "' '", "[]", "{}", "~"}) {
    CAPTURE(value);
    CHECK(ErrorOf(With(value, refuse)) == "f.yml:1:6: error: 'key' is empty");
  }
}

}  // namespace
}  // namespace codec
