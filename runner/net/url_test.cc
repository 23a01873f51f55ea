// SPDX-License-Identifier: Apache-2.0
#include "net/url.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"

namespace net {
namespace {

TEST_CASE("ParseUrl takes http and https addresses apart, and nothing else") {
  Result<Url> url = ParseUrl("https://Registry.Example/v2/?a=b");
  REQUIRE(url.ok());
  CHECK(url.value().scheme == "https");
  CHECK(url.value().host == "registry.example");
  CHECK(url.value().port == 443);
  CHECK(ParseUrl("http://[::1]:5000/").value().host == "::1");
  CHECK(ParseUrl("http://[::1]:5000/").value().port == 5000);
  for (const char* bad : {"", "ftp://a/", "file:///etc/passwd", "https://u:p@a/", "https://", "a/b",
                          "https://a/\r\nx: y", "https://a:99999/", "//a/b"}) {
    CAPTURE(bad);
    CHECK(ParseUrl(bad).error().code == Code::kInvalid);
  }
}

TEST_CASE("ResolveUrl reads a Location as a browser does") {
  Url base = ParseUrl("https://a.example/v2/x/blobs/y").value();
  const auto resolved = [&](const char* location) {
    return ResolveUrl(base, location).value().text;
  };
  CHECK(resolved("/z?q=1") == "https://a.example/z?q=1");
  CHECK(resolved("z") == "https://a.example/v2/x/blobs/z");
  CHECK(resolved("//b.example/z") == "https://b.example/z");
  CHECK(resolved("http://b.example:81/z") == "http://b.example:81/z");
  CHECK(CodeOf(ResolveUrl(base, "ftp://b.example/z")) == Code::kInvalid);
  CHECK(CodeOf(ResolveUrl(base, "https://u@b.example/z")) == Code::kInvalid);
}

TEST_CASE("SameService wants host and port") {
  Url base = ParseUrl("https://a.example/").value();
  CHECK(base.SameService(ParseUrl("https://A.example:443/z").value()));
  CHECK_FALSE(base.SameService(ParseUrl("https://a.example:444/z").value()));
  CHECK_FALSE(base.SameService(ParseUrl("http://a.example/z").value()));
  CHECK_FALSE(base.SameService(ParseUrl("https://b.example/z").value()));
}

TEST_CASE("ParseUrl shows no user and no password of what it refuses") {
  for (const char* text : {"https://user:secret@a.example/", "https://user:sec/ret@a.example/",
                           "ftp://user:sec?ret@a.example/", "user:secret@a.example", "u:secret@"}) {
    CAPTURE(text);
    const std::string what = ParseUrl(text).error().what;
    CHECK(what.find("sec") == std::string::npos);
    CHECK(what.find("***@") != std::string::npos);
  }
}

TEST_CASE("ShownUrl leaves out the query: it may hold a signature") {
  CHECK(ShownUrl("https://a.example/b?X-Amz-Signature=hush") == "https://a.example/b");
  CHECK(ShownUrl("https://a.example/\n::error::x") == "https://a.example/ ::error::x");
}

TEST_CASE("KindOf knows what an address is for in every spelling") {
  for (const char* host : {"127.0.0.1", "127.1", "0x7f.1", "2130706433", "::1", "localhost",
                           "::ffff:127.0.0.1", "a.localhost"}) {
    CAPTURE(host);
    CHECK(KindOf(host) == AddressKind::kLoopback);
  }
  CHECK(KindOf("169.254.169.254") == AddressKind::kLinkLocal);
  CHECK(KindOf("fe80::1%eth0") == AddressKind::kLinkLocal);
  for (const char* host : {"10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1"}) {
    CAPTURE(host);
    CHECK(KindOf(host) == AddressKind::kPrivate);
  }
  for (const char* host : {"0.0.0.0", "0", "::", "224.0.0.1", "255.255.255.255", "ff02::1"}) {
    CAPTURE(host);
    CHECK(KindOf(host) == AddressKind::kUnusable);
  }
  for (const char* host : {"1.1.1.1", "172.32.0.1", "2606:4700::1111"}) {
    CAPTURE(host);
    CHECK(KindOf(host) == AddressKind::kPublic);
  }
  CHECK(KindOf("ghcr.io") == AddressKind::kName);
}

}  // namespace
}  // namespace net
