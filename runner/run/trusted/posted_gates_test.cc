// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/posted_gates.h"

#include <catch2/catch.hpp>
#include <string>

namespace run {
namespace {

constexpr char kConfig[] = R"(
gates: {files: 10, paths: {docs/: refuse}}
tasks:
  fix:
    agent: command
    command: [fix]
    gates: {files: 20, bytes: 1MiB, paths: {deploy/: refuse, Makefile: allow}}
  update:
    agent: command
    command: [update]
    gates: {files: 5, paths: {src/: refuse}}
)";

Config Parsed() {
  Result<Config> config = ParseConfig(kConfig, {"config.yml", nullptr});
  REQUIRE(config.ok());
  return std::move(config).value();
}

std::string PatternsOf(const change::GateLimits& limits) {
  std::string text;
  for (const change::PathRule& rule : limits.paths) text += rule.pattern + " ";
  return text;
}

}  // namespace

TEST_CASE("A report of a task that is named passes the gates of its own runs") {
  const change::GateLimits fix = PostedGates(Parsed(), "fix").value();
  CHECK(PatternsOf(fix) == "docs/ deploy/ Makefile ");
  CHECK(fix.files_max == 20);
  CHECK(fix.patch_bytes_max == 1 << 20);
  const change::GateLimits update = PostedGates(Parsed(), "update").value();
  CHECK(PatternsOf(update) == "docs/ src/ ");
  CHECK(update.files_max == 5);
  CHECK(update.patch_bytes_max == change::GateLimits().patch_bytes_max);
}

TEST_CASE("A report of an unknown task passes what every task refuses, and loosens nothing") {
  const change::GateLimits limits = PostedGates(Parsed(), "").value();
  CHECK(PatternsOf(limits) == "docs/ deploy/ src/ ");
  CHECK(limits.files_max == 5);
  CHECK(limits.patch_bytes_max == 1 << 20);
  const change::GateLimits none = PostedGates({}, "").value();
  CHECK(none.paths.empty());
  CHECK(none.files_max == change::GateLimits().files_max);
}

TEST_CASE("A task that the configuration does not have is refused, and is not every task") {
  for (const Config& config : {Parsed(), Config()}) {
    Result<change::GateLimits> limits = PostedGates(config, "fixx");
    REQUIRE_FALSE(limits.ok());
    CHECK(limits.error().code == Code::kRefused);
    CHECK(limits.error().what.find("'fixx'") != std::string::npos);
  }
}
}  // namespace run
