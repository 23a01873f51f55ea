// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/query.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace codec {
namespace {

// "key=value" of each pair, behind it what was wrong.
std::string Read(std::string_view query) {
  auto reader = std::make_unique<QueryReader>(query);
  std::string text;
  while (reader->Next()) {
    text += "[" + std::string(reader->key()) + "=" + std::string(reader->value()) + "]";
  }
  return text + std::string(reader->error());
}

TEST_CASE("QueryReader decodes pair after pair and skips what is empty") {
  CHECK(Read("").empty());
  CHECK(Read("a=1&&b=x%2Fy+z&") == "[a=1][b=x/y z]");
  CHECK(Read("verbose&tag=&=v&a=b=c") == "[verbose=][tag=][=v][a=b=c]");
  CHECK(Read("%61%3d=1") == "[a==1]");
}

TEST_CASE("QueryReader stops at what is broken and says so") {
  CHECK(Read("a=1&b=%2&c=3") == "[a=1]an invalid percent escape in the query");
  CHECK(Read("a=%zz") == "an invalid percent escape in the query");
  CHECK(Read("a=%ff") == "the query is not UTF-8");
  CHECK(Read("\xff") == "the query is not UTF-8");
}

TEST_CASE("QueryReader takes pairs up to its bound") {
  std::string longest = "a=" + std::string(kQueryPairBytesMax - 2, '+');
  CHECK(Read(longest) == "[a=" + std::string(kQueryPairBytesMax - 2, ' ') + "]");
  CHECK(Read(longest + "+") == "the query has a pair longer than 65536 bytes");
}

TEST_CASE("MayMeanKey knows the keys that some server reads as another") {
  for (const char* key :
       {"a", "A", "a[]", "a[0]", "a[x][y]", " a", "\ta", "[a]", "[]a", "a ", "a]"}) {
    INFO(key);
    CHECK(MayMeanKey(key, "a"));
  }
  for (const char* key : {"", "b", "ab", "aa", "a_", "a.b", "b[a]", "[b]", "_a", "[]"}) {
    INFO(key);
    CHECK_FALSE(MayMeanKey(key, "a"));
  }
  for (const char* key : {"user.name", "user name", "user[name", "user[name]", "USER_NAME"}) {
    INFO(key);
    CHECK(MayMeanKey(key, "user_name"));
  }
  CHECK(MayMeanKey("filter", "filter[name]"));
  CHECK(MayMeanKey("filter[name][]", "filter[name]"));
  CHECK_FALSE(MayMeanKey("filter[other]", "filter[name]"));
  CHECK_FALSE(MayMeanKey("filter[names]", "filter[name]"));
}

}  // namespace
}  // namespace codec
