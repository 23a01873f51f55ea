// SPDX-License-Identifier: Apache-2.0
#include "codec/text/shell_word.h"

#include <catch2/catch.hpp>

TEST_CASE("ShellWord leaves a shell nothing to do with a text") {
  CHECK(codec::ShellWord("") == "''");
  CHECK(codec::ShellWord("a b;$(c)\n") == "'a b;$(c)\n'");
  CHECK(codec::ShellWord("it's") == R"('it'\''s')");
}
