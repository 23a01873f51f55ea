// SPDX-License-Identifier: Apache-2.0
#include "codec/text/lower_case.h"

#include <catch2/catch.hpp>

namespace codec {

TEST_CASE("Letters of all scripts have a small form") {
  CHECK(LowerCase("ABC xyz 123") == "abc xyz 123");
  CHECK(LowerCase("ÖSTERREICH IST ÜBEL") == "österreich ist übel");
  CHECK(LowerCase("ПРИВЕТ МИР") == "привет мир");
  CHECK(LowerCase("RÉSUMÉ ŸĀŽǄ") == "résumé ÿāžǆ");
  CHECK(LowerCase("ẞ ß ſ") == "ß ß ſ");
  CHECK(LowerCase("ԱԲ Ⴀ Ꭰ 𐐀 Ａ Ⅷ Ⓐ") == "աբ ⴀ ꭰ 𐐨 ａ ⅷ ⓐ");
  CHECK(LowerCase("日本語 한국어 عربى") == "日本語 한국어 عربى");
}

TEST_CASE("Turkish letters are those of Python") { CHECK(LowerCase("İI ı") == "i̇i ı"); }

TEST_CASE("A sigma at the end of a word is a final one") {
  CHECK(LowerCase("ΟΔΟΣ ΣΑΣ Σ") == "οδος σας σ");
  CHECK(LowerCase("ΑΣ' ΑΣ'Α ΑΣ.") == "ας' ασ'α ας.");
}

TEST_CASE("What is not UTF-8 stays as it is") {
  CHECK(LowerCase("\xff\xc3 A\xce") == "\xff\xc3 a\xce");
}

TEST_CASE("Any case is found, in a text of any length") {
  CHECK(ContainsInAnyCase("in ÖSTERREICH", "österreich"));
  CHECK(ContainsInAnyCase("x", ""));
  CHECK(ContainsInAnyCase("", ""));
  CHECK_FALSE(ContainsInAnyCase("", "x"));
  CHECK_FALSE(ContainsInAnyCase("OSTERREICH", "österreich"));
  for (size_t before = 65520; before < 65560; ++before) {
    CAPTURE(before);
    const std::string text = std::string(before, 'A') + "ΟΔΟΣ" + std::string(70000, 'B');
    CHECK(ContainsInAnyCase(text, "aοδοσB"));
    CHECK(ContainsInAnyCase(text, "Οδο"));
    CHECK_FALSE(ContainsInAnyCase(text, "οδος"));
  }
}

}  // namespace codec
