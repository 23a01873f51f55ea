// SPDX-License-Identifier: Apache-2.0
#include "run/signal_watch.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/sys.h"

namespace run {
namespace {

// The main thread of a process of its own does nothing more. Gives its exit status.
int ExitOf(const std::string& directory, SignalWatch::Bounds bounds) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    Result<Signals> signals = CatchSignals();
    if (!signals.ok()) ::_exit(100);
    SignalWatch watch(signals.value(), Recorder(Request{}), directory, bounds);
    if (!watch.Start().ok()) ::_exit(101);
    for (;;) ::pause();
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Place {
  Place() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Place() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/signal_watch_test.XXXXXX";
};

TEST_CASE("What is not collected in time ends the run by its limit, with a record") {
  const Place place;
  const Deadline soon = Deadline::After(std::chrono::milliseconds(50));
  CHECK(ExitOf(place.path, {.until = soon, .late = sandbox::LimitName::kTimeout}) == 124);
  CHECK(ExitOf(place.path, {.until = soon, .late = sandbox::LimitName::kDisk}) == 125);
  Result<std::string> record = sys::ReadFile(place.path + "/run.json", 1 << 20);
  REQUIRE(record.ok());
  CHECK(record.value().find("\"limit\": \"disk\"") != std::string::npos);
  CHECK(record.value().find("not-collected") != std::string::npos);
}

TEST_CASE("Too much processor time ends the run too") {
  const Place place;
  CHECK(ExitOf(place.path, {.processor_max = std::chrono::nanoseconds(1)}) == 125);
}

}  // namespace
}  // namespace run
