// SPDX-License-Identifier: Apache-2.0
// OpenShell 6.1 #55, and its documents on `protocol: tcp`.
#include "policy/load/live_update.h"

#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace policy {
namespace {

constexpr std::string_view kNow =
    "version: 1\n"
    "filesystem_policy: {include_workdir: true, read_only: [/usr, /etc], read_write: [/tmp]}\n"
    "process: {run_as_user: sandbox}\n";

Policy Parsed(std::string_view yaml) { return ParsePolicy(yaml, {}).value().policy; }

// Returns the answer to `before` becoming `before` with `from` replaced by `to`.
std::string Change(std::string_view before, std::string_view from, std::string_view to) {
  std::string after(before);
  after.replace(after.find(from), from.size(), to);
  Status status = CheckLiveUpdate(Parsed(before), Parsed(after));
  return status.ok() ? "accepted" : status.error().what;
}

TEST_CASE("CheckLiveUpdate refuses to take a path away") {
  CHECK(Change(kNow, "/usr, ", "") ==
        "filesystem read_only path '/usr' cannot be removed on a live sandbox");
  CHECK(Change(kNow, "/tmp", "") ==
        "filesystem read_write path '/tmp' cannot be removed on a live sandbox");
}

TEST_CASE("CheckLiveUpdate lets paths be added and moved about") {
  CHECK(Change(kNow, "/usr, ", "/usr, /opt, ") == "accepted");
  CHECK(Change(kNow, "/usr, /etc", "/etc, /usr") == "accepted");
  CHECK(Change(kNow, "[/tmp]", "[/tmp, /var/cache]") == "accepted");
}

TEST_CASE("CheckLiveUpdate refuses to change what the kernel was told at the start") {
  CHECK(Change(kNow, "include_workdir: true", "include_workdir: false") ==
        "filesystem include_workdir cannot be changed on a live sandbox");
  CHECK(Change(kNow, "user: sandbox", "user: 1000") ==
        "process policy cannot be changed on a live sandbox");
  CHECK(Change(kNow, "process: {run_as_user: sandbox}\n", "") ==
        "process policy cannot be changed on a live sandbox");
  CHECK(Change(kNow, "process:", "landlock: {compatibility: hard_requirement}\nprocess:") ==
        "landlock policy cannot be changed on a live sandbox");
}

TEST_CASE("CheckLiveUpdate lets the network change, but for the first captured endpoint") {
  constexpr std::string_view kHttp =
      "version: 1\n"
      "network_policies: {a: {endpoints: [{host: a.example.com, port: 443}]}}\n";
  constexpr std::string_view kTcp =
      "version: 1\n"
      "network_policies: {a: {endpoints: [{host: a.example.com, port: 443, protocol: tcp}]}}\n";
  CHECK(Change(kHttp, "a.example.com", "b.example.com") == "accepted");
  CHECK(Change(kHttp, "port: 443", "port: 443, protocol: tcp") ==
        "the first 'protocol: tcp' endpoint cannot be added on a live sandbox");
  CHECK(Change(kTcp, "a.example.com", "b.example.com") == "accepted");
  CHECK(Change(kTcp, ", protocol: tcp", "") == "accepted");
}

}  // namespace
}  // namespace policy
