// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

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

Beside::Beside(const std::function<void()>& body) {
  Result<std::thread> thread = StartThread(body, Deadline::After({}));
  if (thread.ok()) {
    thread_ = std::move(thread).value();
  } else {
    body();
  }
}

Beside& Beside::operator=(Beside&& other) noexcept {
  Wait();
  thread_ = std::move(other.thread_);
  return *this;
}

void Beside::Wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sys
