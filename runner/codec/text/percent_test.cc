// SPDX-License-Identifier: Apache-2.0
#include "codec/text/percent.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("PercentEncode leaves the unreserved characters of RFC 3986 alone") {
  CHECK(PercentEncode("AZaz09-._~") == "AZaz09-._~");
  CHECK(PercentEncode("a b/+\xc3\xa9") == "a%20b%2F%2B%C3%A9");
}

TEST_CASE("PercentDecode undoes escapes and leaves what is none") {
  CHECK(PercentDecode("a%20b%2f%2F") == "a b//");
  CHECK(PercentDecode("100%&%zz%4") == "100%&%zz%4");
  CHECK(PercentDecode("a+b") == "a+b");
  CHECK(FormDecode("a+b%2B") == "a b+");
}

TEST_CASE("PercentEncodePath leaves the slashes of a path") {
  CHECK(PercentEncodePath("/a b//c%") == "/a%20b//c%25");
  CHECK(PercentEncodePath("").empty());
}

}  // namespace
}  // namespace codec
