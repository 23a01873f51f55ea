// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "base/deadline.h"
#include "base/result.h"

namespace sys {

// std::thread throws where no thread can be made. The usual reason is a process limit that other
// processes of the user take up for a moment (EAGAIN, pthread_create(3)): it is tried again until
// `deadline`.
inline Result<std::thread> StartThread(std::function<void()> body, Deadline deadline) {
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

}  // namespace sys
