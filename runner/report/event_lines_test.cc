// SPDX-License-Identifier: Apache-2.0
#include "report/event_lines.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "base/code_of.h"
#include "base/join.h"
#include "base/sys.h"

namespace report {
namespace {

// Returns whether `jsonl` is a whole record, and what it lists: "path argument argument;...".
std::pair<bool, std::string> Read(std::string_view jsonl) {
  char directory[] = "/tmp/program_lines_XXXXXX";
  ENSURE(::mkdtemp(directory) != nullptr);
  ENSURE(sys::WriteFile(std::string(directory) + "/programs.jsonl", jsonl).ok());
  std::string programs;
  Result<bool> all = ForEachProgram(directory, [&](const StartedProgram& one) {
    programs += one.path + " " + Join(one.arguments, " ") + ";";
  });
  std::filesystem::remove_all(directory);
  ENSURE(all.ok());
  return {all.value(), programs};
}

constexpr char kFirst[] = "{\"version\":1}\n";
constexpr char kEntry[] =
    R"({"time":1,"pid":2,"parent":1,"path":"/bin/echo","arguments":["echo","a b"]})"
    "\n";

TEST_CASE("What is no regular file is not read, and not waited for") {
  char directory[] = "/tmp/program_lines_XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  const std::string pipe = std::string(directory) + "/programs.jsonl";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(CodeOf(ForEachLine(pipe, 100, 100, [](std::string_view, bool) {})) == Code::kInvalid);
  std::filesystem::remove_all(directory);
}

TEST_CASE("A record that was kept from the beginning lists every program") {
  CHECK(Read(std::string(kFirst) + kEntry + kEntry) ==
        std::pair(true, std::string("/bin/echo echo a b;/bin/echo echo a b;")));
  CHECK(Read(kFirst) == std::pair(true, std::string()));
}

TEST_CASE("A record of which something is missing is not taken for all") {
  const std::string first = kFirst;
  const std::string entry = "/bin/echo echo a b;";
  CHECK(Read("") == std::pair(false, std::string()));
  CHECK(Read(kEntry) == std::pair(false, std::string()));
  CHECK(Read("{\"version\":2}\n" + std::string(kEntry)).first == false);
  CHECK(Read(first + kEntry + "{\"cut\":1}\n") == std::pair(false, entry));
  CHECK(Read(first + kEntry + R"({"pid":3,"path":"/bin)") == std::pair(false, entry));
  CHECK(Read(first + R"({"path":"/bin/echo","arguments":[1]})" + "\n").first == false);
  CHECK(Read(first + R"({"path":"/bin/a","arguments":["a"],"cut":1})" + "\n") ==
        std::pair(false, std::string("/bin/a a;")));
  CHECK(Read(first + R"({"path":"","arguments":["a"]})" + "\n") ==
        std::pair(false, std::string(" a;")));
  CHECK_FALSE(ForEachProgram("/nonexistent", [](const StartedProgram&) {}).value());
}

}  // namespace
}  // namespace report
