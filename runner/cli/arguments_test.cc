// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <catch2/catch.hpp>

namespace cli {
namespace {

const std::vector<OptionSpec> kOptions = {
    {"policy", "FILE", "", "A file."},
    {"env", "NAME=VALUE", "", "A variable.", true},
    {"json", "", "", "A switch."},
};

Arguments Parse(const std::vector<std::string>& words) {
  return ParseArguments(kOptions, words).value();
}

Error Refused(const std::vector<std::string>& words) {
  return ParseArguments(kOptions, words).error();
}

TEST_CASE("ParseArguments tells options, operands and the command behind -- apart") {
  Arguments arguments =
      Parse({"one", "--policy", "p.yml", "two", "--json", "--", "sh", "-c", "--json", "--"});

  CHECK(arguments.operands == std::vector<std::string>{"one", "two"});
  CHECK(arguments.Get("policy") == "p.yml");
  CHECK(arguments.Has("json"));
  CHECK(arguments.command == std::vector<std::string>{"sh", "-c", "--json", "--"});
}

TEST_CASE("ParseArguments takes a value behind an equals sign, dashes and emptiness included") {
  CHECK(Parse({"--policy=-x=y"}).Get("policy") == "-x=y");
  CHECK(Parse({"--policy", "-"}).Get("policy") == "-");
}

TEST_CASE("ParseArguments takes the next word as a value, whatever it looks like") {
  CHECK(Parse({"--policy", "--json"}).Get("policy") == "--json");
  CHECK(Parse({"--policy", ""}).Get("policy", "unset").empty());
}

TEST_CASE("ParseArguments keeps every value of a repeatable option in order") {
  Arguments arguments = Parse({"--env", "B=2", "word", "--env", "A=1"});

  CHECK(arguments.All("env") == std::vector<std::string>{"B=2", "A=1"});
  CHECK(arguments.operands == std::vector<std::string>{"word"});
}

TEST_CASE("ParseArguments refuses an option given twice") {
  CHECK(Refused({"--policy", "a", "--policy", "b"}).what == "--policy is given twice");
}

TEST_CASE("ParseArguments names the nearest option for an unknown one") {
  Error error = Refused({"--polcy=p.yml"});

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "unknown option '--polcy'");
  CHECK(error.hint == "--policy");
  CHECK(Refused({"--frobnicate"}).hint.empty());
  CHECK(Refused({"-x"}).what == "unknown option '-x'");
}

TEST_CASE("ParseArguments says which option lacks its value") {
  CHECK(Refused({"--policy"}).what == "--policy needs a value");
  CHECK(Refused({"--policy"}).hint == "--policy FILE");
  CHECK(Refused({"--policy="}).what == "--policy needs a value");
}

TEST_CASE("ParseArguments finds --help among anything") {
  CHECK(Parse({"--help"}).help);
  CHECK(Parse({"-h"}).help);
  CHECK(Parse({"--bogus", "--help"}).help);
  CHECK_FALSE(Parse({"--", "--help"}).help);
}

}  // namespace
}  // namespace cli
