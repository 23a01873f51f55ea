// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/authority.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

TEST_CASE("An authority is made canonical") {
  CHECK(ParseAuthority("API.Example.COM:443", std::nullopt) == Authority{"api.example.com", 443});
  CHECK(ParseAuthority("github.com.:443", std::nullopt) == Authority{"github.com", 443});
  CHECK(ParseAuthority("[::1]:443", std::nullopt) == Authority{"::1", 443});
  CHECK(ParseAuthority("[2001:DB8::0001]:1", std::nullopt) == Authority{"2001:db8::1", 1});
  CHECK(ParseAuthority("10.0.0.1:80", std::nullopt) == Authority{"10.0.0.1", 80});
  CHECK(ParseAuthority("host:0", std::nullopt) == Authority{"host", 0});
  CHECK(ParseAuthority("a_b.example:1", std::nullopt) == Authority{"a_b.example", 1});
}

TEST_CASE("A port is needed unless there is a default") {
  CHECK_FALSE(ParseAuthority("host", std::nullopt));
  CHECK_FALSE(ParseAuthority("[::1]", std::nullopt));
  CHECK(ParseAuthority("host", 443) == Authority{"host", 443});
  CHECK(ParseAuthority("[::1]", 443) == Authority{"::1", 443});
  CHECK(ParseAuthority("host:80", 443) == Authority{"host", 80});
}

TEST_CASE("What is no authority is refused") {
  for (const char* text : {"",
                           ":443",
                           "host:",
                           "host:abc",
                           "host:70000",
                           "host:-1",
                           "host:+1",
                           "host:1:2",
                           "ho st:1",
                           "user@host:1",
                           "host/x:1",
                           "::1:443",
                           "[::1:443",
                           "[]:1",
                           "[host]:1",
                           "[10.0.0.1]:1",
                           "[::1]443",
                           "a..b:1",
                           ".a:1",
                           "..:1",
                           ".:1",
                           "h\xc3\xb6st:1",
                           "127.1:80",
                           "0x7f.1:80",
                           "2130706433:80",
                           "host.0x7f:1",
                           "%65vil:1",
                           "a%00b:1"}) {
    INFO(text);
    CHECK_FALSE(ParseAuthority(text, std::nullopt));
  }
  CHECK_FALSE(ParseAuthority(std::string(64, 'a') + ":1", std::nullopt));
  std::string long_name;
  for (int i = 0; i < 70; ++i) long_name += "abc.";
  CHECK_FALSE(ParseAuthority(long_name + "com:1", std::nullopt));
}

TEST_CASE("A default port is left out") {
  CHECK(RenderAuthority({"h", 443}, 443) == "h");
  CHECK(RenderAuthority({"h", 444}, 443) == "h:444");
  CHECK(RenderAuthority({"::1", 443}, 80) == "[::1]:443");
}

TEST_CASE("An absolute target comes apart") {
  AbsoluteTarget target = ParseAbsoluteTarget("HTTP://h:80/a?b").value();
  CHECK(target.scheme == "http");
  CHECK(target.authority == "h:80");
  CHECK(target.path_and_query == "/a?b");
  CHECK(ParseAbsoluteTarget("http://h")->path_and_query == "/");
  CHECK(ParseAbsoluteTarget("http://h?q")->path_and_query == "/?q");
  for (const char* text : {"/path", "*", "h:80", "://h", "1x://h", "/?next=http://x"}) {
    INFO(text);
    bool absolute = ParseAbsoluteTarget(text).has_value();
    CHECK_FALSE(absolute);
  }
}

}  // namespace
}  // namespace gateway
