// SPDX-License-Identifier: Apache-2.0
#include "image/source/reference.h"

#include <catch2/catch.hpp>

namespace image {
namespace {

const std::string kHex(64, 'a');
const std::string kDigest = "sha256:" + kHex;

std::string Parsed(const std::string& text) {
  Result<Reference> reference = ParseReference(text);
  return reference.ok() ? reference.value().ToString() : "error: " + reference.error().what;
}

TEST_CASE("IsDigest takes sha256 in lower case, whole, and nothing else") {
  CHECK(IsDigest(kDigest));
  for (const std::string& bad :
       {std::string(), kHex, "sha256:" + kHex.substr(1), kDigest + "a", "SHA256:" + kHex,
        "sha256:" + std::string(64, 'A'), "sha256:../" + kHex.substr(3), "sha512:" + kHex,
        "sha256:" + kHex.substr(1) + "\n", "sha256:" + kHex.substr(1) + "g", " " + kDigest}) {
    CAPTURE(bad);
    CHECK_FALSE(IsDigest(bad));
  }
}

TEST_CASE("ParseReference says in full what people leave out") {
  CHECK(Parsed("debian") == "docker.io/library/debian:latest");
  CHECK(Parsed("debian:12") == "docker.io/library/debian:12");
  CHECK(Parsed("acme/agent") == "docker.io/acme/agent:latest");
  CHECK(Parsed("docker.io/debian") == "docker.io/library/debian:latest");
  CHECK(Parsed("index.docker.io/debian") == "docker.io/library/debian:latest");
  CHECK(Parsed("ghcr.io/acme/agent:v1") == "ghcr.io/acme/agent:v1");
  CHECK(Parsed("localhost/agent") == "localhost/agent:latest");
  CHECK(Parsed("registry:5000/agent") == "registry:5000/agent:latest");
  CHECK(Parsed("127.0.0.1:5000/a/b/c") == "127.0.0.1:5000/a/b/c:latest");
  CHECK(Parsed("[::1]:5000/agent:1") == "[::1]:5000/agent:1");
  CHECK(Parsed("GHCR.io/acme/agent") == "ghcr.io/acme/agent:latest");
}

TEST_CASE("ParseReference keeps tag and digest; a digest alone has no tag") {
  CHECK(Parsed("debian:12@" + kDigest) == "docker.io/library/debian:12@" + kDigest);
  CHECK(Parsed("debian@" + kDigest) == "docker.io/library/debian@" + kDigest);
  CHECK(ParseReference("debian@" + kDigest).value().tag.empty());
  CHECK(ParseReference("ghcr.io/a/b:1@" + kDigest).value().Name() == "ghcr.io/a/b");
}

TEST_CASE("ParseReference takes the grammar's separators") {
  for (const char* good : {"a.b/c", "x/a.b", "x/a_b", "x/a__b", "x/a-b", "x/a---b", "x/a0",
                           "x/a:_1", "x/a:A.b-c_d", "0/0"}) {
    CAPTURE(good);
    CHECK(ParseReference(good).ok());
  }
  for (const char* bad : {"",
                          ":",
                          "/",
                          "a/",
                          "/a",
                          "a//b",
                          "x/-a",
                          "x/a-",
                          "x/.a",
                          "x/a..b",
                          "x/a___b",
                          "x/a_-b",
                          "x/a._b",
                          "x/a:",
                          "x/a:.b",
                          "x/a:-b",
                          "x/a:b c",
                          "x/a@",
                          "x/a@sha256:abc",
                          "x/a@sha512:aa",
                          "x/a b",
                          "x/a\n",
                          "-a.b/c",
                          "a..b/c",
                          "a.b:/c",
                          "a.b:123456/c",
                          "a.b:x/c",
                          "[::1/c",
                          "[]/c",
                          "[g]/c",
                          "[::1]x/c",
                          "a/../b",
                          "x/a@@",
                          "é/a",
                          "x/a%2fb",
                          "x/a?b",
                          "x/a#b"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(ParseReference(bad).ok());
    CHECK(ParseReference(bad).error().code == Code::kInvalid);
  }
}

TEST_CASE("ParseReference is bounded: 255 bytes of name, 128 of tag") {
  const std::string long_name = "a.b/" + std::string(251, 'x');
  CHECK(ParseReference(long_name).ok());
  CHECK_FALSE(ParseReference(long_name + "x").ok());
  CHECK(ParseReference("x/a:" + std::string(128, 't')).ok());
  CHECK_FALSE(ParseReference("x/a:" + std::string(129, 't')).ok());
}

TEST_CASE("ParseReference says what to write instead") {
  CHECK(ParseReference("docker://debian").error().hint == "write debian");
  CHECK(ParseReference("https://ghcr.io/a/b").error().hint == "write ghcr.io/a/b");
  CHECK(ParseReference("x/Agent").error().hint == "write it in lower case: x/agent");
  CHECK(ParseReference("Acme/agent").error().hint == "write it in lower case: acme/agent");
  CHECK(ParseReference(kHex).error().hint == "write NAME@sha256:" + kHex);
  CHECK(ParseReference("x/a\n::error::").error().what.find('\n') == std::string::npos);
}

TEST_CASE("ParseReference takes layouts: the first colon ends the directory") {
  Reference layout = ParseReference("oci:/images/agent:v1@" + kDigest).value();
  CHECK(layout.kind == Reference::Kind::kLayout);
  CHECK(layout.path == "/images/agent");
  CHECK(layout.tag == "v1");
  CHECK(layout.digest == kDigest);
  CHECK(layout.Name() == "oci:/images/agent");
  CHECK(layout.ToString() == "oci:/images/agent:v1@" + kDigest);
  CHECK(ParseReference("oci:dir").value().tag.empty());
  CHECK(ParseReference("oci:dir:ghcr.io/a/b:1").value().tag == "ghcr.io/a/b:1");
  for (const std::string& bad :
       {std::string("oci:"), std::string("oci::v1"), std::string("oci:dir:"),
        std::string("oci:dir: "), std::string("oci:dir@sha256:abc"),
        "oci:" + std::string(5000, 'a'), std::string("oci:a\0b", 7)}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseReference(bad).ok());
  }
}

TEST_CASE("ParseReference takes archives with the name of an image in them") {
  Reference archive = ParseReference("docker-archive:x.tar:agent:1").value();
  CHECK(archive.kind == Reference::Kind::kArchive);
  CHECK(archive.path == "x.tar");
  CHECK(archive.ToString() == "docker-archive:x.tar:docker.io/library/agent:1");
  CHECK(archive.Name() == "docker-archive:x.tar");
  CHECK(ParseReference("docker-archive:x.tar").value().ToString() == "docker-archive:x.tar");
  CHECK_FALSE(ParseReference("docker-archive:").ok());
  CHECK_FALSE(ParseReference("docker-archive:x.tar:A").ok());
  CHECK_FALSE(ParseReference("docker-archive:x.tar:a@" + kDigest).ok());
}

TEST_CASE("What ToString writes is read as the same reference") {
  for (const std::string& text :
       {std::string("debian"), "a.b/c:d@" + kDigest, std::string("[::1]:5/a"),
        std::string("oci:d:t"), std::string("docker-archive:f:a.b/c:d")}) {
    CAPTURE(text);
    const std::string whole = ParseReference(text).value().ToString();
    CHECK(Parsed(whole) == whole);
  }
}

}  // namespace
}  // namespace image
