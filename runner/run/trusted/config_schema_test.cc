// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/config_schema.h"

#include <catch2/catch.hpp>
#include <set>

#include "codec/data/json.h"
#include "run/trusted/config.h"

namespace run {
namespace {

std::set<std::string> NamesOf(const codec::Json* properties) {
  REQUIRE(properties != nullptr);
  std::set<std::string> names;
  for (const codec::Json::Member& member : *properties->object()) names.insert(member.first);
  return names;
}

// Returns the keys that the parser lists for a key that is near none.
std::set<std::string> KeysBy(const std::string& text) {
  auto read = [](const std::string&) -> Result<std::string> { return Error{}; };
  Error error = ParseConfig(text, {"config.yml", read}).error();
  std::string hint = error.hint;
  REQUIRE(hint.starts_with("one of: "));
  std::set<std::string> keys;
  for (size_t from = 8; from < hint.size();) {
    size_t end = std::min(hint.find(", ", from), hint.size());
    keys.insert(hint.substr(from, end - from));
    from = end + 2;
  }
  return keys;
}

}  // namespace

TEST_CASE("The configuration's schema has the keys that the parser knows, and no others") {
  codec::Json schema = codec::ParseJson(RenderConfigSchema()).value();
  const codec::Json* properties = schema.Find("properties");
  CHECK(NamesOf(properties) == KeysBy("zzzzzzzz: 1\n"));
  CHECK(NamesOf(properties->Find("limits")->Find("properties")) ==
        KeysBy("limits: {zzzzzzzz: 1}\n"));
  const codec::Json* task = properties->Find("tasks")->Find("additionalProperties");
  CHECK(NamesOf(task->Find("properties")) == KeysBy("tasks: {a: {zzzzzzzz: 1}}\n"));
  for (const char* inner : {"limits", "when"}) {
    CHECK(NamesOf(task->Find("properties")->Find(inner)->Find("properties")) ==
          KeysBy("tasks: {a: {" + std::string(inner) + ": {zzzzzzzz: 1}}}\n"));
  }
}

}  // namespace run
