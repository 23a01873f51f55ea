// SPDX-License-Identifier: Apache-2.0
#include "codec/text/fold.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("FoldToAscii takes what full case folding takes for ASCII letters, and nothing else") {
  CHECK(FoldToAscii("AbC-1_\u00e9") == "abc-1_\u00e9");
  CHECK(FoldToAscii("\u017f\u212a\ufb01\ufb06\u00df\u1e9e") == "skfistssss");
  CHECK(FoldToAscii("\u0131\u00c9\u0430") == "\u0131\u00c9\u0430");
  CHECK(FoldToAscii("A\xffZ\xc5") == "a\xffz\xc5");
}

TEST_CASE("FoldFileName is what the least particular file system compares") {
  CHECK(FoldFileName(".v\u017fCode. .") == ".vscode");
  CHECK(FoldFileName(".g\u200cit\u3164::$INDEX_ALLOCATION") == ".git");
  CHECK(FoldFileName("a\xff.b") == "a\xff.b");
  CHECK(FoldFileName("..") == ".");
  CHECK(FoldFileText("A:b. ") == "a:b. ");
}

TEST_CASE("IsDefaultIgnorable is the whole property") {
  for (char32_t c : {0xadu, 0x34fu, 0x115fu, 0x1160u, 0x17b5u, 0x180bu, 0x200du, 0x3164u, 0xfe0fu,
                     0xffa0u, 0xfff0u, 0x1bca3u, 0x1d17au, 0xe0fffu}) {
    CAPTURE(static_cast<unsigned>(c));
    CHECK(IsDefaultIgnorable(c));
  }
  for (char32_t c : {0x20u, 0xaeu, 0x2028u, 0x2800u, 0xfe10u, 0xfff9u, 0xe1000u}) {
    CAPTURE(static_cast<unsigned>(c));
    CHECK_FALSE(IsDefaultIgnorable(c));
  }
}

}  // namespace
}  // namespace codec
