// SPDX-License-Identifier: Apache-2.0
#include "net/proxy.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "net/url.h"

namespace net {
namespace {

TEST_CASE("CheckProxy takes what machines have, and never shows what it refuses") {
  for (const char* url : {"", "http://proxy:3128", "proxy.example.com:3128", "https://proxy",
                          "http://user:word@proxy:3128/", "user:p%40ss@10.0.0.1:3128"}) {
    CAPTURE(url);
    CHECK(CheckProxy({url, ""}).ok());
  }
  for (const char* url :
       {"socks5://user:word@proxy:1080", "http://", "http://user:wo rd@proxy:3128",
        "http://user:word@proxy:port", "http://user:word@proxy\r\n:1"}) {
    CAPTURE(url);
    Status checked = CheckProxy({url, ""});
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().code == Code::kInvalid);
    CHECK(checked.error().what.find("user") == std::string::npos);
  }
}

TEST_CASE("ParseProxy takes an address apart") {
  struct Case {
    const char* url;
    bool tls;
    const char* host;
    int port;
    const char* login;
  };
  const Case cases[] = {
      {"http://Proxy.example:3128", false, "proxy.example", 3128, ""},
      {"proxy", false, "proxy", 1080, ""},
      {"https://proxy/", true, "proxy", 443, ""},
      {"http://[2001:db8::1]:8080", false, "2001:db8::1", 8080, ""},
      {"http://user:p%40ss%3a@10.0.0.1:3128", false, "10.0.0.1", 3128, "user:p@ss:"},
      {"user@proxy:1", false, "proxy", 1, "user:"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.url);
    ProxyAddress address = ParseProxy({one.url, ""}).value();
    CHECK(address.tls == one.tls);
    CHECK(address.host == one.host);
    CHECK(address.port == one.port);
    CHECK(address.login == one.login);
  }
  CHECK(CodeOf(ParseProxy({"", ""})) == Code::kInvalid);
}

TEST_CASE("TakesProxy leaves out this machine and what NO_PROXY names") {
  struct Case {
    const char* except;
    const char* url;
    bool takes;
  };
  const Case cases[] = {
      {"", "https://forge.example/", true},
      {"", "http://localhost:3000/", false},
      {"", "http://127.0.0.1:3000/", false},
      {"", "http://[::1]:3000/", false},
      {"*", "https://forge.example/", false},
      {"a.example,forge.example", "https://forge.example/", false},
      {"a.example forge.example", "https://FORGE.example/", false},
      {"FORGE.example", "https://api.forge.example/", false},
      {".forge.example", "https://api.forge.example/", false},
      {".forge.example", "https://forge.example/", false},
      {"forge.example", "https://notforge.example/", true},
      {"forge.example", "https://forge.example.net/", true},
      {"example,,", "https://forge.example/", false},
      {".,,", "https://forge.example/", true},
      {"10.0.0.0/8", "https://10.1.2.3/", false},
      {"10.0.0.0/8", "https://11.1.2.3/", true},
      {"192.168.4.0/22", "https://192.168.7.9/", false},
      {"192.168.4.0/22", "https://192.168.8.1/", true},
      {"0.0.0.0/0", "https://192.168.8.1/", false},
      {"0.0.0.0/0", "https://[2001:db8::1]/", true},
      {"10.0.0.1", "https://10.0.0.1/", false},
      {"10.0.0.1", "https://10.0.0.10/", true},
      {"0.0.1", "https://10.0.0.1/", true},
      {"[2001:db8::1]", "https://[2001:db8::1]/", false},
      {"2001:db8::/33", "https://[2001:db8:7fff::1]/", false},
      {"2001:db8::/33", "https://[2001:db8:8000::1]/", true},
      {"10.0.0.0/33,10.0.0.0/,10.0.0.0/x,10.0.0.0/-1", "https://10.0.0.0/", true},
  };
  for (const Case& one : cases) {
    CAPTURE(one.except, one.url);
    const std::string host = ParseUrl(one.url).value().host;
    CHECK(TakesProxy({"http://proxy:3128", one.except}, host) == one.takes);
    CHECK_FALSE(TakesProxy({"", one.except}, host));
    CHECK(TakesNone({"http://proxy:3128", one.except}) == (one.except == std::string("*")));
  }
}

}  // namespace
}  // namespace net
