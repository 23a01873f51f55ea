// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <chrono>
#include <string>
#include <system_error>

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

}  // namespace sys
