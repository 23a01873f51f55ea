// SPDX-License-Identifier: Apache-2.0
#include "codec/data/json_line.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"

namespace codec {
namespace {

TEST_CASE("JsonLine writes members in the order of the calls") {
  std::string out = "x";
  JsonLine line(out);
  line.Number("a", -1).Object("b").Text("c", "d").Array("e").Element("f").Element("g");
  line.CloseArray().Close().Members("\"h\":{}").Close();
  CHECK(out == R"(x{"a":-1,"b":{"c":"d","e":["f","g"]},"h":{}})");
}

TEST_CASE("JsonLine escapes as the parser unescapes, and replaces what is not UTF-8") {
  for (int byte = 0; byte < 256; ++byte) {
    std::string value = "a" + std::string(1, static_cast<char>(byte)) + "z";
    std::string out;
    JsonLine(out).Text("k", value).Close();
    INFO(byte);
    Result<Json> parsed = ParseJson(out);
    REQUIRE(parsed.ok());
    CHECK(parsed.value().StringAt("k") == (byte < 0x80 ? value : "a\ufffdz"));
  }
  std::string out;
  JsonLine(out).Text("k", "grün \U0001f600").Close();
  CHECK(ParseJson(out).value().StringAt("k") == "grün \U0001f600");
}

}  // namespace
}  // namespace codec
