// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/http_target.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

// The canonical path, or "refused".
std::string Canonical(std::string_view path, bool allow_encoded_slash = false) {
  Result<std::string> canonical = CanonicalPath(path, allow_encoded_slash);
  return canonical.ok() ? canonical.value() : "refused";
}

TEST_CASE("CanonicalPath resolves dot segments") {
  CHECK(Canonical("/a/./b") == "/a/b");
  CHECK(Canonical("/a/b/.") == "/a/b/");
  CHECK(Canonical("/a/../b") == "/b");
  CHECK(Canonical("/a/b/..") == "/a/");
  CHECK(Canonical("/public/%2e%2E/secret") == "/secret");
  CHECK(Canonical("") == "/");
  CHECK(Canonical("/") == "/");
}

TEST_CASE("CanonicalPath refuses to climb above the root") {
  CHECK(Canonical("/..") == "refused");
  CHECK(Canonical("/a/../..") == "refused");
  CHECK(Canonical("/a/%2e%2e/%2e%2e") == "refused");
}

TEST_CASE("CanonicalPath collapses slashes") {
  CHECK(Canonical("//") == "/");
  CHECK(Canonical("/public//secret") == "/public/secret");
  CHECK(Canonical("//public//../secret") == "/secret");
}

TEST_CASE("CanonicalPath keeps an encoded slash only where it is allowed") {
  CHECK(Canonical("/a%2Fb") == "refused");
  CHECK(Canonical("/a%2fb", true) == "/a%2Fb");
  CHECK(Canonical("/public/..%2fsecret", true) == "refused");
  CHECK(Canonical("/public/.%2fsecret", true) == "refused");
  CHECK(Canonical("/public/..%2f..%2fsecret", true) == "refused");
  CHECK(Canonical("/public/x%2f..", true) == "refused");
}

TEST_CASE("CanonicalPath refuses what climbs for a server that takes a backslash for a slash") {
  CHECK(Canonical("/public/..%5csecret") == "refused");
  CHECK(Canonical("/public/x\\..\\..\\secret") == "refused");
  CHECK(Canonical("/public/..%5C%2fsecret", true) == "refused");
  CHECK(Canonical("/public/a%5c.") == "refused");
  CHECK(Canonical("/public/a%5cb..c") == "/public/a%5Cb..c");
}

TEST_CASE("CanonicalPath refuses overlong forms of a dot, a slash or a zero") {
  for (const char* path : {"/a/%c0%ae%c0%ae/b", "/a/..%c0%afb", "/a/%C1%9Cb", "/a%C0%80",
                           "/%e0%80%ae./b", "/%e0%9f%80", "/%f0%80%80%ae/b"}) {
    CHECK(Canonical(path) == "refused");
  }
  CHECK(Canonical("/a/%e0%a4%85") == "/a/%E0%A4%85");
  CHECK(Canonical("/caf%E9") == "/caf%E9");
}

TEST_CASE("CanonicalPath refuses what is no path") {
  CHECK(Canonical("/a%00b") == "refused");
  CHECK(Canonical("/a%0A") == "refused");
  CHECK(Canonical("/a%0D") == "refused");
  CHECK(Canonical("/a%7F") == "refused");
  CHECK(Canonical("/a\x01") == "refused");
  CHECK(Canonical("/caf\xC3\xA9") == "refused");
  CHECK(Canonical("/a#b") == "refused");
  CHECK(Canonical("/a?b") == "refused");
  CHECK(Canonical("/a%") == "refused");
  CHECK(Canonical("/a%2") == "refused");
  CHECK(Canonical("/a%zz") == "refused");
  CHECK(Canonical("a") == "refused");
  CHECK(Canonical("*") == "refused");
  CHECK(Canonical("/" + std::string(4095, 'a')) == "/" + std::string(4095, 'a'));
  CHECK(Canonical("/" + std::string(4096, 'a')) == "refused");
}

TEST_CASE("CanonicalPath writes every byte in one way") {
  CHECK(Canonical("/fetch/http://example.test") == "/fetch/http:/example.test");
  CHECK(Canonical("/files/hello%20world.txt") == "/files/hello%20world.txt");
  CHECK(Canonical("/search/a%3Fb") == "/search/a%3Fb");
  CHECK(Canonical("/users/%40alice") == "/users/@alice");
  CHECK(Canonical("/a/caf%c3%a9") == "/a/caf%C3%A9");
  CHECK(Canonical("/a/%252F/b") == "/a/%252F/b");
  CHECK(Canonical("/a/100%25/b") == "/a/100%25/b");
}

TEST_CASE("CanonicalPath strips path parameters before it resolves dots") {
  CHECK(Canonical("/public/..;/..;/secret") == "refused");
  CHECK(Canonical("/api/v1/..;/..;/..;/admin/keys") == "refused");
  CHECK(Canonical("/..;") == "refused");
  CHECK(Canonical("/a/..%3bx/b") == "/b");
  CHECK(Canonical("/a;v=1/b;w") == "/a/b");
  CHECK(Canonical("/a;%zz") == "refused");
}

TEST_CASE("CanonicalPath of a canonical path is the same path") {
  for (std::string_view path : {"/", "/a/", "/a/caf%C3%A9", "/a/%252F/b", "/x:@!$&'()*+,=~"}) {
    CHECK(Canonical(path) == path);
  }
}

TEST_CASE("ParseQuery decodes escapes and plus signs") {
  auto pairs = ParseQuery("slug=my%2Fskill&name=Foo+Bar&q=a%2Bb&tag=&verbose&x=a=b").value();
  REQUIRE(pairs.size() == 6);
  CHECK(pairs[0].second == "my/skill");
  CHECK(pairs[1].second == "Foo Bar");
  CHECK(pairs[2].second == "a+b");
  CHECK(pairs[3].second.empty());
  CHECK(pairs[4] == std::pair<std::string, std::string>("verbose", ""));
  CHECK(pairs[5].second == "a=b");
  CHECK(ParseQuery("").value().empty());
}

TEST_CASE("ParseQuery refuses bad escapes and invalid UTF-8") {
  CHECK(!ParseQuery("bad%2").ok());
  CHECK(!ParseQuery("a=%zz").ok());
  CHECK(!ParseQuery("a=%ff").ok());
}

TEST_CASE("ParseAuthority reads host and port") {
  CHECK(ParseAuthority("[::1]:443").value() == std::pair<std::string, uint16_t>("::1", 443));
  CHECK(ParseAuthority("Example.COM.:80").value() ==
        std::pair<std::string, uint16_t>("example.com", 80));
  CHECK(ParseAuthority("host:0").value().second == 0);
  for (std::string_view bad :
       {"host", "host:", "host:abc", "host:70000", ":443", "::1:443", "2001:db8::1:443", "[x]:1",
        "[::1]", "a b:1", "a/b:1", "a@b:1", "a..:1", ".:1"}) {
    CHECK_FALSE(ParseAuthority(bad).ok());
  }
}

TEST_CASE("ParseRequestUrl knows the default ports") {
  RequestUrl url = ParseRequestUrl("https://api.example.com/a?b").value();
  CHECK(url.host == "api.example.com");
  CHECK(url.port == 443);
  CHECK(url.target == "/a?b");
  CHECK(ParseRequestUrl("http://example.com").value().port == 80);
  CHECK(ParseRequestUrl("http://example.com?x").value().target == "/?x");
  CHECK(ParseRequestUrl("https://[::1]/").value().host == "::1");
  CHECK(ParseRequestUrl("https://[::1]:8443/").value().port == 8443);
  CHECK(ParseRequestUrl("example.com:443").value().scheme.empty());
  CHECK_FALSE(ParseRequestUrl("ftp://example.com/").ok());
  CHECK_FALSE(ParseRequestUrl("https://user@example.com/").ok());
}

}  // namespace
}  // namespace codec
