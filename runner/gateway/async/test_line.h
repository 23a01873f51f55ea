// SPDX-License-Identifier: Apache-2.0
// For unit tests: runs coroutines to their end, and makes streams on socket pairs.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"

namespace gateway {

inline Deadline Soon() { return Deadline::After(std::chrono::milliseconds(20)); }
// Returns a deadline that is long enough on any machine: a test that waits for it has failed.
inline Deadline Late() { return Deadline::After(std::chrono::seconds(30)); }

inline Task<void> Pause(EventLoop& loop, std::chrono::milliseconds span) {
  co_await loop.Sleep(Deadline::After(span));
}

template <typename T>
Task<void> Store(EventLoop& loop, Task<T> task, std::optional<typename Task<T>::Value>& result) {
  if constexpr (std::is_void_v<T>) {
    co_await task;
    result.emplace();
  } else {
    result = co_await task;
  }
  loop.Stop();
}

// Runs the loop until `task` is done.
template <typename T>
T RunUntilDone(EventLoop& loop, Task<T> task) {
  std::optional<typename Task<T>::Value> result;
  loop.Spawn(Store(loop, std::move(task), result));
  if (!result.has_value()) loop.Run();
  REQUIRE(result.has_value());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// A stream and the test's end of it. Each send of the test arrives as one read.
class TestLine {
 public:
  explicit TestLine(EventLoop& loop) {
    auto [ours, theirs] = sys::SocketPair().value();
    ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
    far_ = std::move(ours);
    stream_ = std::make_unique<Stream>(loop, std::move(theirs));
  }
  Stream& stream() { return *stream_; }
  void Send(std::string_view bytes) { REQUIRE(sys::WriteAll(far_.get(), bytes).ok()); }
  // Ends what the test sends.
  void Finish() { REQUIRE(::shutdown(far_.get(), SHUT_WR) == 0); }
  // Closes the test's end.
  void Close() { far_.Close(); }
  // Returns all that has arrived at the test's end.
  std::string Arrived() {
    std::string all;
    std::string piece(size_t{1} << 18, '\0');
    for (;;) {
      ssize_t n = ::recv(far_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (n <= 0) break;
      all.append(piece, 0, static_cast<size_t>(n));
    }
    return all;
  }
  // True once all of it has arrived, and nothing will follow.
  bool Ended() {
    char byte = 0;
    return ::recv(far_.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  Fd far_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace gateway
