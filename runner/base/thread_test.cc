// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>

namespace {

constexpr uid_t kOther = 54321;  // Root is not bound by RLIMIT_NPROC.

bool LimitProcesses(rlim_t processes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) return false;
  limit.rlim_cur = processes == RLIM_INFINITY ? limit.rlim_max : processes;
  return ::setrlimit(RLIMIT_NPROC, &limit) == 0;
}

// The exit status of `body`, run in a process of an ordinary user.
int InProcess(int (*body)()) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(::geteuid() != 0 || ::setresuid(kOther, kOther, kOther) == 0 ? body() : 9);
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("where no thread can be made, starting one is an error after the deadline") {
  int status = InProcess([] {
    if (!LimitProcesses(0)) return 8;
    Result<std::thread> refused = sys::StartThread([] {}, Deadline::After({}));
    if (refused.ok()) return 7;
    if (refused.error().what != "starting a thread: Resource temporarily unavailable") return 6;
    // The control.
    if (!LimitProcesses(RLIM_INFINITY)) return 5;
    Result<std::thread> started = sys::StartThread([] {}, Deadline::After({}));
    if (!started.ok()) return 4;
    started.value().join();
    return 0;
  });
  CHECK(status == 0);
}

TEST_CASE("a thread is started once there is room for it") {
  int status = InProcess([] {
    std::thread frees([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      (void)LimitProcesses(RLIM_INFINITY);
    });
    if (!LimitProcesses(0)) return 8;
    Result<std::thread> started =
        sys::StartThread([] {}, Deadline::After(std::chrono::seconds(60)));
    if (!started.ok()) return 7;
    started.value().join();
    frees.join();
    return 0;
  });
  CHECK(status == 0);
}

TEST_CASE("What is done beside has been done after Wait, and is done at once without a thread") {
  int status = InProcess([] {
    std::atomic<bool> go = false;
    std::atomic<bool> done = false;
    sys::BackgroundTask beside([&] {
      while (!go) std::this_thread::yield();
      done = true;
    });
    if (done) return 8;  // It does not hold up its caller: this line is reached.
    go = true;
    beside = sys::BackgroundTask();  // Waits for what was there.
    if (!done) return 7;
    if (!LimitProcesses(0)) return 6;
    done = false;
    beside = sys::BackgroundTask([&] { done = true; });
    return done ? 0 : 5;
  });
  CHECK(status == 0);
}

cpu_set_t Processors(pid_t process) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  (void)::sched_getaffinity(process, sizeof processors, &processors);  // Else there are none.
  return processors;
}

TEST_CASE("a process that is moved aside may run where it might before") {
  const cpu_set_t all = Processors(0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
  for (const cpu_set_t& allowed : {all, one}) {
    REQUIRE(::sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    sys::MoveAside(child);
    const cpu_set_t after = Processors(child);
    CHECK(CPU_EQUAL(&after, &allowed));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // A thread begins with fewer, and has all of them again soon.
    std::atomic<bool> same = false;
    sys::BackgroundTask beside([&] {
      for (Deadline end = Deadline::After(std::chrono::minutes(2)); !same && !end.passed();) {
        const cpu_set_t own = Processors(0);
        same = CPU_EQUAL(&own, &allowed);
      }
    });
    beside.Wait();
    CHECK(same);
  }
  CHECK(::sched_setaffinity(0, sizeof all, &all) == 0);
  sys::MoveAside(-1);  // A process that is gone.
}

}  // namespace
