// SPDX-License-Identifier: Apache-2.0
// These tests have a stand-in for `openshell`; those in tests/openshell have the real one.
#include "backend/openshell/sandbox.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "backend/openshell/attend.h"
#include "backend/openshell/fleet.h"
#include "base/sys.h"

namespace openshell {
namespace {

// A directory with an `openshell` that is this script.
class StandIn {
 public:
  explicit StandIn(const std::string& script) {
    REQUIRE(::mkdtemp(top_) != nullptr);
    REQUIRE(sys::WriteFile(top() + "/openshell", "#!/bin/sh\n" + script + "\n").ok());
    REQUIRE(::chmod((top() + "/openshell").c_str(), 0755) == 0);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() { std::filesystem::remove_all(top_); }

  std::string top() const { return top_; }
  ProgramPlaces places() const { return {top() + ":/usr/bin:/bin", ""}; }

 private:
  char top_[32] = "/tmp/stand-in-XXXXXX";
};

constexpr std::chrono::seconds kPatience{120};

// Writes once the file `go` is there, so that no order of events decides.
std::string Records(const std::string& bytes) {
  return "until [ -e \"${0%/*}/go\" ]; do sleep 0.01; done; exec head -c " + bytes + " /dev/zero";
}

// The bound of records, which this process's hard limit may lower.
uintmax_t RecordsMax() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  return std::min<uintmax_t>(limit.rlim_max, kRecordsBytesMax);
}

struct Followed {
  uintmax_t bytes = 0;
  bool full = false;
  run::EndKind end = run::EndKind::kExited;
};

// Follows a sandbox that has records of so many bytes, whose agent then ends by itself if `ends`.
Followed Follow(const std::string& bytes, bool ends) {
  StandIn place(Records(bytes));
  Sandbox sandbox(CommandLine(place.places(), {}), "name", place.top());
  REQUIRE(sandbox.FollowEvents().ok());
  REQUIRE(sys::WriteFile(place.top() + "/go", "").ok());
  Result<bool> ended = sys::WaitReadable(sandbox.records_ended(), Deadline::After(kPatience));
  REQUIRE(ended.ok());
  REQUIRE(ended.value());
  Followed followed;
  followed.bytes = std::filesystem::file_size(sandbox.events_path());
  followed.full = sandbox.RecordsFull();
  Result<Child> agent =
      Child::Start(place.places(), {.argv = {"sleep", ends ? "0" : "infinity"}, .environment = {}});
  REQUIRE(agent.ok());
  run::Request request;
  request.timeout_s = 600;
  request.idle_timeout_s = 0;
  request.output_bytes = 1000;
  const codec::SecretMask secrets;
  const run::OutputFiles files;
  Result<run::AgentEnd> end =
      Attend(std::move(agent).value(), -1, -1, sandbox, request, files, secrets, nullptr);
  REQUIRE(end.ok());
  followed.end = end.value().kind;
  return followed;
}

TEST_CASE("A sandbox's records are bounded, and an agent with more is ended") {
  const Followed many = Follow("100000000", false);
  CHECK(many.bytes == RecordsMax());
  CHECK(many.full);
  CHECK(many.end == run::EndKind::kRecordsLimit);

  const Followed few = Follow("1000", true);
  CHECK(few.bytes == 1000);
  CHECK_FALSE(few.full);
  CHECK(few.end == run::EndKind::kExited);
}

TEST_CASE("A signal ends the wait for OpenShell's version") {
  StandIn silent("exec sleep infinity");
  auto [read, write] = sys::Pipe().value();
  write.Close();  // As a signal does, it makes `read` readable.
  Result<std::unique_ptr<Gateway>> attached =
      Gateway::Attach(silent.places(), "http://127.0.0.1:1", "", read.get());
  REQUIRE_FALSE(attached.ok());
  CHECK(attached.error().what.ends_with("interrupted"));

  StandIn old("echo openshell 0.0.1");
  attached = Gateway::Attach(old.places(), "http://127.0.0.1:1", "");
  REQUIRE_FALSE(attached.ok());
  CHECK(attached.error().code == Code::kUnsupported);
}

// Lists the sandboxes of a gateway whose first page has so many, and whose others are full.
Result<std::vector<FleetSandbox>> List(int first) {
  StandIn place(R"(page() { printf '['; seq "$1" | sed 's/.*/{"name":"n&"},/'; echo '{}]'; }
case "$*" in
--version) echo openshell 0.0.112;;
*status*) echo '{"status":"connected","version":"0.0.112"}';;
*'--offset 0') page )" +
                std::to_string(first - 1) + R"(;;
*) page 499;;
esac)");
  const std::string path = sys::Environment("PATH").value_or("");
  const std::optional<std::string> runtime = sys::Environment("XDG_RUNTIME_DIR");
  ::setenv("PATH", (place.top() + ":/usr/bin:/bin").c_str(), 1);
  ::setenv("XDG_RUNTIME_DIR", place.top().c_str(), 1);
  Result<std::vector<FleetSandbox>> all = ListFleet({"http://127.0.0.1:1", ""});
  ::setenv("PATH", path.c_str(), 1);
  runtime ? ::setenv("XDG_RUNTIME_DIR", runtime->c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
  return all;
}

TEST_CASE("A gateway that lists sandboxes without end is an error") {
  for (int first : {500, 20000}) {
    Result<std::vector<FleetSandbox>> all = List(first);
    REQUIRE_FALSE(all.ok());
    CHECK(all.error().what == "the gateway lists more than 10000 sandboxes");
  }
  Result<std::vector<FleetSandbox>> some = List(499);
  REQUIRE(some.ok());
  CHECK(some.value().size() == 499);
}

}  // namespace
}  // namespace openshell
