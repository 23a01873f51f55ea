// SPDX-License-Identifier: Apache-2.0
#include "session/typed_lines.h"

#include <catch2/catch.hpp>

namespace session {
namespace {

// Everything that comes of the keys: for the shell, for the screen, and the commands.
struct Heard {
  std::string shell;
  std::string screen;
  std::string commands;

  bool operator==(const Heard&) const = default;
};

Heard Type(std::string_view keys, bool in_pieces = false, KeyReader reader = KeyReader::kShell) {
  TypedLines lines({"%diff", "%reset", "%snapshot"});
  Heard heard;
  while (!keys.empty()) {
    std::string_view piece = in_pieces ? keys.substr(0, 1) : keys;
    TypedLines::Typed typed = lines.Take(piece, reader);
    heard.shell += typed.for_shell;
    heard.screen += typed.for_screen;
    if (typed.command) heard.commands += "(" + *typed.command + ")";
    keys.remove_prefix(piece.size() - typed.rest.size());
  }
  return heard;
}

struct Case {
  std::string_view keys;
  Heard heard;
};

TEST_CASE("A command is taken out where the shell has none of its line") {
  const Case cases[] = {
      {"ls\r", {"ls\r", "", ""}},
      {"%diff\r", {"", "%diff\r\n", "(%diff)"}},
      {"ls\r%diff\rls\r", {"ls\rls\r", "%diff\r\n", "(%diff)"}},
      {"\x03%diff\n", {"\x03", "%diff\r\n", "(%diff)"}},
      {"\x1b[24;10R%diff\r", {"\x1b[24;10R", "%diff\r\n", "(%diff)"}},
      {"\x1b[?1;2c\x1b[I%diff\r", {"\x1b[?1;2c\x1b[I", "%diff\r\n", "(%diff)"}},
      {"%snapshot a b\r", {"", "%snapshot a b\r\n", "(%snapshot a b)"}},
      {"%dx\x7f\x7f\x7f%diff\r", {"%dx\x7f\x7f\x7f%diff\r", "%d\b \b\b \b", ""}},
      {"%di\x7f\x7f\x7f%diff\r", {"", "%di\b \b\b \b\b \b%diff\r\n", "(%diff)"}},
      {"%di\x15%diff\r", {"", "%di\b \b\b \b\b \b%diff\r\n", "(%diff)"}},
      {"%di\x03%diff\r", {"\x03", "%di\b \b\b \b\b \b%diff\r\n", "(%diff)"}},
  };
  for (const Case& one : cases) {
    INFO(one.keys);
    CHECK(Type(one.keys, true) == one.heard);
  }
}

TEST_CASE("What is no command is the shell's, as it was typed") {
  for (std::string_view keys :
       {"%1\r", "%\r", "%%\r", "%r\r", "%diffs\r", "%di\t", "%\x1b[A", "%\xc3\xa9\r", "x%diff\r",
        " %diff\r", "%diff-\r", "\x1b]l%diff\r", "\x1b[A%diff\r", "x\x1b[24;10R%diff\r",
        "\x1b[24;%diff\r", "\x1b\x1b[1R%diff\r"}) {
    INFO(keys);
    for (bool in_pieces : {false, true}) {
      Heard heard = Type(keys, in_pieces);
      CHECK(heard.shell == keys);
      CHECK(heard.commands.empty());
    }
  }
}

TEST_CASE("Nothing is taken out while a program has the terminal, or from a paste") {
  for (KeyReader reader : {KeyReader::kProgram, KeyReader::kLines}) {
    CHECK(Type("%diff\r", false, reader) == Heard{"%diff\r", "", ""});
  }
  std::string pasted = "\x1b[200~ls\r%reset\r%reset\r\x1b[201~";
  CHECK(Type(pasted + "\r", true) == Heard{pasted + "\r", "", ""});
  CHECK(Type(pasted + "\r%diff\r", true) == Heard{pasted + "\r", "%diff\r\n", "(%diff)"});
}

TEST_CASE("A program that takes each key leaves nothing of it in the shell's line") {
  auto taken = [](KeyReader reader, std::string_view keys) {
    TypedLines lines({"%diff"});
    (void)lines.Take(keys, reader);
    return lines.Take("%diff\r", KeyReader::kShell).command.has_value();
  };
  CHECK(taken(KeyReader::kProgram, "q"));
  CHECK_FALSE(taken(KeyReader::kLines, "q"));
  CHECK(taken(KeyReader::kLines, "q\x1a"));
  CHECK_FALSE(taken(KeyReader::kShell, "q"));
}

TEST_CASE("Keys that wait for the shell are not overtaken by a command") {
  CHECK(Type("make\r%diff\r") == Heard{"make\r%diff\r", "", ""});
}

}  // namespace
}  // namespace session
