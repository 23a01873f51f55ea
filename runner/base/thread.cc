// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace sys {

Result<std::thread> StartThread(const std::function<void()>& body, Deadline deadline) {
  constexpr std::chrono::milliseconds kBetween{20};
  for (;;) {
    try {
      return std::thread(body);
    } catch (const std::system_error& error) {
      if (deadline.passed() || error.code() != std::errc::resource_unavailable_try_again) {
        return Error{Code::kIo, std::string("starting a thread: ") + error.code().message()};
      }
    }
    std::this_thread::sleep_for(kBetween);
  }
}

namespace {

// Restricts a process or thread to the processors other than the current one, then allows it `all`
// of them again. `set` sets its affinity and returns 0 on success.
void AwayFromHere(const cpu_set_t& all, const std::function<int(const cpu_set_t&)>& set) {
  cpu_set_t others = all;
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE) return;
  CPU_CLR(static_cast<size_t>(here), &others);
  if (CPU_COUNT(&others) > 0 && set(others) == 0) (void)set(all);
}

}  // namespace

void MoveAside(pid_t started) {
  cpu_set_t all;
  if (::sched_getaffinity(started, sizeof all, &all) != 0) return;
  AwayFromHere(all, [started](const cpu_set_t& set) {
    return ::sched_setaffinity(started, sizeof set, &set);
  });
}

BackgroundTask::BackgroundTask(const std::function<void()>& body) {
  Result<std::thread> thread = StartThread(body, Deadline::After({}));
  if (thread.ok()) {
    thread_ = std::move(thread).value();
    const pthread_t started = thread_.native_handle();
    cpu_set_t all;
    if (::pthread_getaffinity_np(started, sizeof all, &all) != 0) return;
    AwayFromHere(all, [started](const cpu_set_t& set) {
      return ::pthread_setaffinity_np(started, sizeof set, &set);
    });
  } else {
    body();
  }
}

BackgroundTask& BackgroundTask::operator=(BackgroundTask&& other) noexcept {
  Wait();
  thread_ = std::move(other.thread_);
  return *this;
}

void BackgroundTask::Wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sys
