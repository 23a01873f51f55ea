// SPDX-License-Identifier: Apache-2.0
#include "codec/data/secret_mask.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "codec/text/percent.h"

namespace codec {
namespace {

const std::string kValue = "t0ken-5ecret\"\\&= <x>/y";

SecretMask MaskOf(std::string_view value) {
  SecretMask mask;
  CHECK(mask.Add(value));
  return mask;
}

// Every second letter of hexadecimal digits and words in upper case; not the `u` of an escape.
std::string MixCase(std::string text) {
  for (size_t at = 0; at < text.size(); at += 2) {
    if (text[at] != 'u') text[at] = ascii::ToUpper(text[at]);
  }
  return text;
}

}  // namespace

TEST_CASE("A secret is masked in each of its usual forms, and other text stays as it is") {
  const SecretMask mask = MaskOf(kValue);
  const std::string escaped = RenderJsonLine(Json(kValue));
  const std::vector<std::string> forms = {
      kValue,
      "Bearer " + kValue,
      escaped,
      RenderJsonLine(Json(escaped)),
      "t0ken-5ecret\\\"\\\\\\u0026= \\u003cx\\u003e/y",
      "t0ken-5ecret\\\"\\\\&= <x>\\/y",
      PercentEncode(kValue),
      "t0ken-5ecret%22%5c%26%3d%20%3cx%3e%2fy",
      "t0ken%2D5ecret%22%5C&=+%3cx>/y",
      R"(t0ken\u002D5ecret\u0022\u005c\u0026\u003D \u003cx\u003E\u002fy)",
      R"(\u0074\u0030ken-5ecret\"\\&= <x>/y)",
      R"(t0ken-5ecret\\\"\\u005C\\u0026= <x>\\\/y)",
      R"(t0ken-5ecret\u005c\u0022\u005c\u005C\u0026= <x>\u005c\u002fy)",
      EncodeHex(kValue),
      MixCase(EncodeHex(kValue)),
      PercentEncode(MixCase(EncodeHex(kValue))),
      MixCase(kValue),
      MixCase(PercentEncode(kValue)),
      MixCase(R"(t0ken\u002d5ecret\u0022\u005c\u0026\u003d \u003cx\u003e\u002fy)"),
      EncodeBase64(kValue),
      EncodeBase64Url(kValue),
      EncodeBase64("user:" + kValue),
      EncodeBase64("token:" + kValue),
      EncodeBase64("x:" + kValue + ":and more"),
  };
  for (const std::string& form : forms) {
    CAPTURE(form);
    CHECK(mask.Finds("before " + form + " after"));
    const std::string masked = mask.Mask("before " + form + " after");
    CHECK(masked.find(SecretMask::kMark) != std::string::npos);
    CHECK(masked.starts_with("before "));
    CHECK(masked.ends_with(" after"));
    CHECK_FALSE(mask.Finds(masked));
    CHECK(masked.size() < form.size() + 40);
  }
  for (const std::string& plain :
       {std::string("t0ken-5ecre"), EncodeBase64("something else"), MixCase(EncodeBase64(kValue)),
        std::string(100, 't'), std::string()}) {
    CHECK_FALSE(mask.Finds(plain));
    CHECK(mask.Mask(plain) == plain);
  }
}

TEST_CASE(
    "Every ASCII character of a secret may be escaped for JSON, by itself or with the others") {
  std::string all = "12345678";
  for (char c = 1; c < 127; ++c) {
    if (c != '\n') all += c;  // Each line of a value of several counts.
  }
  all += '|';
  const SecretMask mask = MaskOf(all);
  for (const char* format : {"\\u%04x", "\\u%04X", "\\\\u%04x", "%%%02x"}) {
    std::string whole;
    for (size_t at = 0; at < all.size(); ++at) {
      char escape[16];
      std::snprintf(escape, sizeof escape, format, all[at]);
      whole += escape;
    }
    CAPTURE(whole);
    CHECK(mask.Mask("\"" + whole + "\"") == "\"[CREDENTIAL]\"");
    CHECK(mask.Mask("\"" + whole.substr(0, whole.size() - 1) + "\"").find("[CREDENTIAL]") ==
          std::string::npos);
  }
  // The forms of one count as well: PHP escapes base64's slashes, .NET its plus signs.
  const SecretMask bytes = MaskOf("\xff\xef\xbe\xfb\xef\xbe\xff\xff\xff");
  CHECK(bytes.Mask("\"\\/+++++++\\/\\/\\/\\/\"").find("++") == std::string::npos);
  CHECK(bytes.Mask("\"/\\u002B++++++////\"").find("++") == std::string::npos);
}

TEST_CASE("Short values are not masked, and blanks around one are not part of it") {
  SecretMask mask;
  CHECK_FALSE(mask.Add("a"));
  CHECK_FALSE(mask.Add("1234567"));
  CHECK_FALSE(mask.Add(" \n"));
  CHECK(mask.empty());
  CHECK(mask.Mask("banana 1234567") == "banana 1234567");
  CHECK(mask.Add("12345678\n"));
  CHECK(mask.Mask("<12345678>") == "<[CREDENTIAL]>");
}

TEST_CASE("A key of several lines is masked line by line, and its frame is not") {
  const std::string pem =
      "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n}\n"
      "AQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n";
  const SecretMask mask = MaskOf(pem);
  CHECK(mask.Mask("x " + pem + "y") == "x [CREDENTIAL]\ny");
  CHECK(mask.Mask("  AQEFAASCBKcwggSjAgEAAoIB\r\n") == "  [CREDENTIAL]\r\n");
  CHECK(mask.Mask("-----BEGIN PRIVATE KEY-----\n}") == "-----BEGIN PRIVATE KEY-----\n}");
}

TEST_CASE("A stream gives the same however it is cut, and keeps nothing back that is certain") {
  SecretMask mask = MaskOf(kValue);
  CHECK(mask.Add(kValue + "-and-longer"));
  const std::string text = "a t0ken-5ecre " + kValue + kValue + "-and-longer" + kValue +
                           "-and \\u0074 " + R"(\u00740ken-5ecret\"\\\u0026= <x>\/y t0ken)";
  const std::string whole = mask.Mask(text);
  CHECK(whole ==
        "a t0ken-5ecre [CREDENTIAL][CREDENTIAL][CREDENTIAL]-and \\u0074 [CREDENTIAL] t0ken");
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second : {first, (first + text.size()) / 2}) {
      MaskedStream stream(mask);
      std::string out = stream.Feed(text.substr(0, first));
      out += stream.Feed(text.substr(first, second - first));
      out += stream.Feed(text.substr(second));
      out += stream.Finish();
      REQUIRE(out == whole);
    }
  }
  MaskedStream stream(mask);
  CHECK(stream.Feed("no secret\n") == "no secret\n");
  CHECK(stream.Feed("\\u00") == "");
  CHECK(stream.Feed("e4 \\") == "\\u00e4 ");
  CHECK(stream.Feed("x t0ken-") == "\\x ");
  CHECK(stream.Feed("s\n") == "t0ken-s\n");
}

TEST_CASE("A secret that becomes known while a stream runs is masked from then on") {
  SecretMask mask;
  MaskedStream stream(mask);
  CHECK(stream.Feed("granted-token-1 ") == "granted-token-1 ");
  CHECK(mask.Add("granted-token-1"));
  CHECK(stream.Feed("granted-token-1 ") == "[CREDENTIAL] ");
}

}  // namespace codec
