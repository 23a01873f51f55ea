// SPDX-License-Identifier: Apache-2.0
#include "forge/api_path.h"

#include <catch2/catch.hpp>

namespace forge {

TEST_CASE("What is put into a path stays one segment, or makes the path invalid") {
  ApiPath base = ApiPath::Repository("acme/site");
  CHECK(base.text() == "/repos/acme/site");
  CHECK((base / "commits" / "../../../user" / "x?y#z").text() ==
        "/repos/acme/site/commits/..%2F..%2F..%2Fuser/x%3Fy%23z");
  CHECK((base / "commits" / "../../../user").valid());
  for (const char* segment : {"", ".", ".."}) CHECK_FALSE((base / segment / "more").valid());
  for (const char* name : {"", "acme", "acme/", "/site", "../site", "acme/.."}) {
    CHECK_FALSE(ApiPath::Repository(name).valid());
  }
  CHECK(base.Below("a b/c").text() == "/repos/acme/site/a%20b/c");
  for (const char* path : {"", "a//b", "/a", "a/", "a/../b"}) CHECK_FALSE(base.Below(path).valid());
  CHECK((base / 7).Query("ref", "a&b=c/d").Query("page", 2).text() ==
        "/repos/acme/site/7?ref=a%26b%3Dc%2Fd&page=2");
}

}  // namespace forge
