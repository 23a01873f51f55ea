// SPDX-License-Identifier: Apache-2.0
#include "codec/text/shell_word.h"

#include <catch2/catch.hpp>

TEST_CASE("ShellWord leaves a shell nothing to do with a text") {
  CHECK(codec::ShellWord("") == "''");
  CHECK(codec::ShellWord("a b;$(c)\n") == "'a b;$(c)\n'");
  CHECK(codec::ShellWord("it's") == R"('it'\''s')");
}

TEST_CASE("ShellArgument quotes only what a shell would read otherwise") {
  CHECK(codec::ShellArgument("+refs/heads/a-b_c.d:x@y=50%") == "+refs/heads/a-b_c.d:x@y=50%");
  for (const char* text : {"", "a(b)", "$x", "a b", "#a", "~a", "a&b", "{a,b}", "a*"}) {
    CHECK(codec::ShellArgument(text) == codec::ShellWord(text));
  }
}
