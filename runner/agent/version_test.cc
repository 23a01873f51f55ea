// SPDX-License-Identifier: Apache-2.0
#include "agent/version.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace agent {
namespace {

TEST_CASE("A later version of the same major one counts as tried") {
  CHECK(IsTried("2.1.197", "2.1.197"));
  CHECK(IsTried("2.1.198 (Claude Code)", "2.1.197"));
  CHECK(IsTried("2.9.0-beta.1", "2.1.197"));
  CHECK_FALSE(IsTried("2.1.196", "2.1.197"));
  CHECK_FALSE(IsTried("2.0.999", "2.1.197"));
  CHECK_FALSE(IsTried("3.0.0", "2.1.197"));
  CHECK_FALSE(IsTried("1.9.9", "2.1.197"));
  for (const char* other : {"", "latest", "2", "2.1", "2.1.", "-2.1.3x", "99999999999.0.0"}) {
    CHECK(IsTried(other, "2.1.197"));
  }
}

TEST_CASE("The version of a program is that of the nearest package above it") {
  char name[] = "/tmp/agent-version-XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string top = name;
  auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(top + path).parent_path());
    std::ofstream(top + path) << text;
  };
  write("/package.json", R"({"name":"outer","version":"9.9.9"})");
  write("/node_modules/agent/package.json", R"({"name":"agent","version":"1.2.3"})");
  write("/node_modules/agent/bin/package.json", R"({"type":"module"})");
  write("/node_modules/agent/bin/agent", "");
  CHECK(PackageVersion(top + "/node_modules/agent/bin/agent") == "1.2.3");
  CHECK(PackageVersion(top + "/node_modules/other") == "9.9.9");
  CHECK(PackageVersion("agent").empty());
  write("/broken/package.json", "{");
  CHECK(PackageVersion(top + "/broken/agent").empty());
  REQUIRE(::mkdir((top + "/waits").c_str(), 0755) == 0);
  REQUIRE(::mkfifo((top + "/waits/package.json").c_str(), 0644) == 0);
  CHECK(PackageVersion(top + "/waits/agent").empty());  // It waits for no writer.
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace agent
