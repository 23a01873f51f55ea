// SPDX-License-Identifier: Apache-2.0
#include "codec/text/json_escape.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("JsonUnescape decodes every escape of JSON") {
  CHECK(JsonUnescape(R"({"a":"x\"y\\z\/\b\f\n\r\t"})") == "{\"a\":\"x\"y\\z/\b\f\n\r\t\"}");
  CHECK(JsonUnescape(R"(\u0041\u002f\u002F)") == "A//");
  CHECK(JsonUnescape(R"(\u00e9\u20ac\ud83d\ude00)") == "\u00e9\u20ac\U0001F600");
  CHECK(JsonUnescape(R"(\\u0041)") == R"(\u0041)");
}

TEST_CASE("JsonUnescape leaves what is not an escape") {
  for (const char* text : {"", "plain", "\\", "a\\", "\\x", "\\u", "\\u00", "\\u00g0", "\\ud83d",
                           "\\ud83dx", "\\ud83d\\u0", "\\ude00", "%41+", "\\'"}) {
    CAPTURE(text);
    CHECK(JsonUnescape(text) == text);
  }
  CHECK(JsonUnescape(R"(\ud83d\u0041)") == R"(\ud83dA)");
}

}  // namespace
}  // namespace codec
