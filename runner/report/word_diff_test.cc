// SPDX-License-Identifier: Apache-2.0
#include "report/word_diff.h"

#include <catch2/catch.hpp>
#include <string>

namespace report {
namespace {

// "price [-] percent": what differs in brackets.
std::string Show(std::string_view line, const std::vector<WordSpan>& spans) {
  std::string out;
  size_t at = 0;
  for (const WordSpan& span : spans) {
    REQUIRE(span.begin == at);
    at = span.end;
    const std::string text(line.substr(span.begin, span.end - span.begin));
    out += span.differs ? "[" + text + "]" : text;
  }
  REQUIRE(at == line.size());
  return out;
}

std::pair<std::string, std::string> Compare(std::string_view before, std::string_view after) {
  const WordDiff diff = CompareWords(before, after);
  return {Show(before, diff.before), Show(after, diff.after)};
}

using Pair = std::pair<std::string, std::string>;

TEST_CASE("Words that differ are marked on either side") {
  CHECK(Compare("return price - percent", "return price * (100 - percent) / 100") ==
        Pair("return price - percent", "return price [* (100 ]- percent[) / 100]"));
  CHECK(Compare("a = f(x)", "a = g(x)") == Pair("a = [f](x)", "a = [g](x)"));
  CHECK(Compare("größe = 1", "größte = 1") == Pair("[größe] = 1", "[größte] = 1"));
  CHECK(Compare("same", "same") == Pair("same", "same"));
}

TEST_CASE("Lines with little in common, or without an end, are not marked") {
  CHECK(Compare("import os", "class Reader:") == Pair("import os", "class Reader:"));
  std::string line;
  for (int i = 0; i < 500; ++i) line += "a,";
  CHECK(Compare(line, line + "b") == Pair(line, line + "b"));
}

TEST_CASE("As many lines as before belong together in order; others by likeness") {
  using Pairs = std::vector<std::pair<size_t, size_t>>;
  CHECK(PairLines({"a", "b"}, {"x", "y"}) == Pairs{{0, 0}, {1, 1}});
  CHECK(PairLines({"  return fail(r);"}, {"if (x) {", "  return fail(reader);"}) == Pairs{{0, 1}});
  CHECK(PairLines({"abc"}, {}).empty());
}

}  // namespace
}  // namespace report
