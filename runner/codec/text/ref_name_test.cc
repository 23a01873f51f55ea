// SPDX-License-Identifier: Apache-2.0
#include "codec/text/ref_name.h"

#include <catch2/catch.hpp>
#include <string>

namespace codec {
namespace {

TEST_CASE("ValidRefName takes what git takes") {
  for (const char* name :
       {"main", "feature/x", "v1.2.3",    "a#b",  "a+b",     "a,b",  "user@x",
        "a_b",  "HEAD",      "fix(ui)/b", "it's", "a&b",     "a!b",  "50%",
        "{x}",  "a;b",       "$(id)",     "`id`", "a|b",     "a\"b", "a<b",
        "a>b",  "a=1",       "ветка",     "é",    "a.lockb", "a./b", "refs/heads/main"}) {
    CAPTURE(name);
    CHECK(ValidRefName(name));
  }
  CHECK(ValidRefName(std::string(250, 'a')));
}

TEST_CASE("ValidRefName refuses what git or an option parser would misread, or what is hidden") {
  for (const std::string& name : {std::string(),
                                  std::string("-rf"),
                                  std::string("a..b"),
                                  std::string("a@{1}"),
                                  std::string("a.lock"),
                                  std::string("a.lock/b"),
                                  std::string("a//b"),
                                  std::string("a/"),
                                  std::string("a."),
                                  std::string("/a"),
                                  std::string(".a"),
                                  std::string("a/.b"),
                                  std::string("a b"),
                                  std::string("a\0b", 3),
                                  std::string("a\nb"),
                                  std::string("a\tb"),
                                  std::string("a:b"),
                                  std::string("a^"),
                                  std::string("a~1"),
                                  std::string("a?"),
                                  std::string("a*"),
                                  std::string("a[b"),
                                  std::string("a\\b"),
                                  std::string("@"),
                                  std::string("a\x7f"),
                                  std::string("\xff"),
                                  std::string("a\xc2\x85"),
                                  std::string("a\xe2\x80\xae") + "b",
                                  std::string("a\xe2\x80\x8b"),
                                  std::string("a\xef\xbb\xbf"),
                                  std::string(251, 'a')}) {
    CAPTURE(name);
    CHECK_FALSE(ValidRefName(name));
  }
}

}  // namespace
}  // namespace codec
