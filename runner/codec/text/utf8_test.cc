// SPDX-License-Identifier: Apache-2.0
#include "codec/text/utf8.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace codec {
namespace {

// The definition, a character at a time.
size_t FindSlowly(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = NextUtf8(text.substr(at));
    if (!character.valid) return at;
    at += character.bytes;
  }
  return std::string_view::npos;
}

TEST_CASE("what is not UTF-8 is found wherever it stands") {
  std::mt19937 chance(1);
  auto below = [&chance](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(chance);
  };
  const std::string pieces[] = {"\xc3\xa4",     "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff", "\xc3",
                                "\xed\xa0\x80", "\x80"};
  size_t invalid = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::string text(below(100), 'x');
    const size_t changes = below(3);
    for (size_t i = 0; i < changes; ++i)
      text.insert(below(text.size() + 1), pieces[below(std::size(pieces))]);
    CHECK(FindInvalidUtf8(text) == FindSlowly(text));
    invalid += FindSlowly(text) == std::string_view::npos ? 0 : 1;
  }
  CHECK(invalid > 1000);
  CHECK(invalid < 19000);
}

}  // namespace
}  // namespace codec
