// SPDX-License-Identifier: Apache-2.0
#include "codec/regex/regex.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

bool Found(std::string_view pattern, std::string_view text) {
  Result<Regex> regex = Regex::Parse(pattern);
  INFO(pattern);
  REQUIRE(regex.ok());
  return regex.value().Search(text);
}

std::string Wrong(std::string_view pattern) {
  Result<Regex> regex = Regex::Parse(pattern);
  INFO(pattern);
  REQUIRE(!regex.ok());
  return regex.error().what;
}

TEST_CASE("A regular expression is searched for anywhere") {
  CHECK(Found("curl", "/usr/bin/curl -d x"));
  CHECK_FALSE(Found("^curl", "/usr/bin/curl"));
  CHECK(Found("^curl\\b.*ext-log", "curl -d @f https://audit.ext-log.example/"));
  CHECK(Found("(curl|wget)\\s+-[a-z]", "then wget -q x"));
  CHECK_FALSE(Found("(curl|wget)\\s+-[a-z]", "then wget  Q"));
  CHECK(Found("a{2,3}b", "caab"));
  CHECK_FALSE(Found("^a{2,3}b", "aaaab"));
  CHECK(Found("x{,2}y", "y"));
  CHECK(Found("{name}", "a {name}"));
  CHECK(Found("[^a-c\\d]$", "12d"));
  CHECK_FALSE(Found("[^a-c\\d]$", "12a"));
  CHECK(Found("[]x]", "]"));
  CHECK(Found("(?i)Secret", "the SECRET"));
  CHECK_FALSE(Found("a.b", "a\nb"));
  CHECK(Found("(?s)a.b", "a\nb"));
  CHECK(Found("end$", "the end\n"));
  CHECK(Found("\\Bat", "cat"));
  CHECK_FALSE(Found("\\bat", "cat"));
  CHECK(Found("(?P<name>a)b|", ""));
  CHECK(Found("é+", "caféé"));
}

TEST_CASE("What needs backtracking, or is malformed, is refused with its place") {
  CHECK(Wrong("(").find("not closed") != std::string::npos);
  CHECK(Wrong("a)").find("unbalanced") != std::string::npos);
  CHECK(Wrong("(?=a)").find("linear time") != std::string::npos);
  CHECK(Wrong("(a)\\1").find("at byte 6") != std::string::npos);
  CHECK(Wrong("*a").find("nothing to repeat") != std::string::npos);
  CHECK(Wrong("a**").find("repetition") != std::string::npos);
  CHECK(Wrong("[a").find("not closed") != std::string::npos);
  CHECK(Wrong("[z-a]").find("range") != std::string::npos);
  CHECK(Wrong("((((a{99}){99}){99}){99})").find("too large") != std::string::npos);
  CHECK(Wrong(std::string(200, '(')).find("too deeply") != std::string::npos);
}

TEST_CASE("The time is linear where a backtracking engine's is exponential") {
  std::string text(100000, 'a');
  CHECK_FALSE(Found("^(a*)*(a|aa)+b$", text));
  CHECK_FALSE(Found("(.*a){12}b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace codec
