// SPDX-License-Identifier: Apache-2.0
#include "codec/text/hex.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("Every byte is two lower-case digits, and comes back from them") {
  std::string bytes("\x00\x7f\x80\xff", 4);
  CHECK(EncodeHex(bytes) == "007f80ff");
  CHECK(DecodeHex("007f80ff") == bytes);
  CHECK(EncodeHex("").empty());
  CHECK(DecodeHex("") == "");
}

TEST_CASE("What has no one meaning as digits is not decoded") {
  for (const char* hex : {"0", "abc", "AB", "0x", "g0", " 00", "00 "}) CHECK_FALSE(DecodeHex(hex));
}

TEST_CASE("IsObjectId takes git's whole names alone") {
  CHECK(IsObjectId(std::string(40, 'a')));
  CHECK(IsObjectId(std::string(64, '0')));
  for (const std::string& other : {std::string(39, 'a'), std::string(40, 'A'), std::string(40, 'g'),
                                   std::string(7, 'a'), std::string()}) {
    CHECK_FALSE(IsObjectId(other));
  }
}

}  // namespace
}  // namespace codec
