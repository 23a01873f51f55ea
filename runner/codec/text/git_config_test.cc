// SPDX-License-Identifier: Apache-2.0
#include "codec/text/git_config.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

TEST_CASE("RedactGitConfig keeps what git needs to work in a checkout") {
  CHECK(codec::RedactGitConfig("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
                               "[remote \"origin\"]\n\turl = https://github.com/acme/site\n"
                               "\tfetch = +refs/heads/*:refs/remotes/origin/*\n") ==
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        "[remote \"origin\"]\n\turl = https://github.com/acme/site\n"
        "\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
}

TEST_CASE("RedactGitConfig drops the credentials that checkout steps persist") {
  std::string redacted = codec::RedactGitConfig(
      "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic c2VjcmV0\n"
      "[credential]\n\thelper = store\n[url \"https://x:token@github.com/\"]\n\tinsteadOf = gh:\n"
      "[includeIf \"gitdir:/w/.git\"]\n\tpath = /tmp/git-credentials.config\n"
      "[user]\n\tname = A\n");

  CHECK(redacted == "[user]\n\tname = A\n");
}

TEST_CASE("RedactGitConfig cuts user and password out of a remote's address") {
  CHECK(codec::RedactGitConfig("[remote \"o\"]\n url = https://oauth2:glpat-x@gitlab.com/a/b\n") ==
        "[remote \"o\"]\n\turl = https://gitlab.com/a/b\n");
}

TEST_CASE("RedactGitConfig drops what could start a program") {
  CHECK(codec::RedactGitConfig("[core]\n\tsshCommand = evil\n\thooksPath = /x\n"
                               "[remote \"o\"]\n\tuploadpack = evil\n") == "");
}

TEST_CASE("RedactGitConfig keeps hooks that lie in the working tree") {
  auto hooks = [](const std::string& value) {
    return codec::RedactGitConfig("[core]\n\thooksPath = " + value + "\n", "/work/site");
  };
  CHECK(hooks(".husky/_") == "[core]\n\thookspath = .husky/_\n");
  CHECK(hooks("\"my hooks\"") == "[core]\n\thookspath = my hooks\n");
  CHECK(hooks("/work/site/.githooks") == "[core]\n\thookspath = .githooks\n");
  for (const char* outside : {"/work/site2/x", "/etc", "../x", "a/../../x", "~/hooks", "a;b", "a#b",
                              "a\\\\b", "\"a", "", "%(prefix)/x"}) {
    INFO(outside);
    CHECK(hooks(outside).empty());
  }
  CHECK(codec::RedactGitConfig("[core]\n\thooksPath = /work/site/.githooks\n").empty());
}

TEST_CASE("RedactGitConfig drops a value that goes on in the next line, with its continuation") {
  CHECK(codec::RedactGitConfig("[user]\n\tname = a\\\n[http]\n\temail = b\n") ==
        "[user]\n\temail = b\n");
  CHECK(codec::RedactGitConfig("[user] name = x\n\temail = b\n") == "");
}

TEST_CASE("IncludedGitConfigs names what is included, under any condition") {
  CHECK(codec::IncludedGitConfigs("[include]\n\tpath = ../a b\n[user]\n\tpath = c\n"
                                  "[IncludeIf \"gitdir:/w/.git\"]\n\tPath=\"/tmp/x\"\n\tother = y\n"
                                  "[include]\n\tpath =\n\tpath\n\tpath = d\\\ne\n") ==
        std::vector<std::string>{"../a b", "/tmp/x", "de"});
}

TEST_CASE("IncludedGitConfigs reads a path as git does") {
  // Each as `git config --file FILE include.path` of git 2.39 says.
  const std::pair<std::string, std::string> all[] = {
      {"[include] path = x", "x"},
      {"[include] ; c\n[user]\n[include]path=x", "x"},
      {"\xEF\xBB\xBF[include]\r\n\tpath = x\r\n", "x"},
      {"[include]\n path = x ; c\n", "x"},
      {"[include]\n path = x# c", "x"},
      {"[include]\n path = a b \t # \"\\", "a b"},
      {"[include]\n path = \"a # b ; \"  c \n", "a # b ;   c"},
      {"[include]\n path = \\\n x", "x"},
      {"[include]\n path = a \\\r\n b\n", "a  b"},
      {"[include]\n path = \"a\\\nb\"c\n", "abc"},
      {"[include]\n path = a\\\\b\\\"c\\td\\ne", "a\\b\"c\td\ne"},
      {"[include]\n path = x\\", "x"},
      {"[includeIf \"gitdir:/a\\\"]\"] path = x", "x"},
      {"# [user]\n ; y\n[include]\n\n path\t=x", "x"},
  };
  for (const auto& [text, path] : all) {
    INFO(text);
    CHECK(codec::IncludedGitConfigs(text) == std::vector<std::string>{path});
  }
}

TEST_CASE("IncludedGitConfigs goes on behind what git refuses") {
  for (const std::string bad : {"path = a\\q", "path = \"a", "path a", "=", "[x", "[y \"z", "\\"}) {
    INFO(bad);
    CHECK(codec::IncludedGitConfigs("[include]\n" + bad + "\n[include]\npath = x\n") ==
          std::vector<std::string>{"x"});
  }
  for (const std::string none :
       {"", "\r", "[", "[include", "[include]\npath", "# [include] path = x", "[user]\npath = x",
        "[include]\n# path = x"}) {
    INFO(none);
    CHECK(codec::IncludedGitConfigs(none).empty());
  }
}
