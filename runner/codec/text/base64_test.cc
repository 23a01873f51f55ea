// SPDX-License-Identifier: Apache-2.0
#include "codec/text/base64.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("Base64 has RFC 4648's test vectors, both ways") {
  for (const auto& [bytes, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"}}) {
    CHECK(EncodeBase64(bytes) == text);
    CHECK(DecodeBase64(text) == bytes);
  }
}

TEST_CASE("What is not Base64 is not decoded") {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zm9v ", " Zm9", "Zm 9", "Zg==Zg==", "Z-9v",
                           "-Zm9", "Zm9-", "Zg==\n   ", "\nZg=", "Zm\nv", "=m9v",
                           "Z\xe9"
                           "9v"}) {
    INFO(text);
    CHECK_FALSE(DecodeBase64(text).has_value());
  }
}

TEST_CASE("The form for URLs has no padding and its own two letters") {
  CHECK(EncodeBase64Url("\xfb\xff\xfe") == "-__-");
  CHECK(EncodeBase64Url("f") == "Zg");
}

}  // namespace
}  // namespace codec
