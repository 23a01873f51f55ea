// SPDX-License-Identifier: Apache-2.0
// The coroutine type of the gateway. `co_await` a Task to run it and to get its value.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace gateway {

// Keeps what a coroutine gives until it is taken.
template <typename T>
struct TaskResult {
  std::optional<T> value;
  template <typename U>
  void return_value(U&& given) {
    value.emplace(std::forward<U>(given));
  }
};
template <>
struct TaskResult<void> {
  void return_void() {}
};

// A coroutine that starts when it is awaited and gives its waiter a T, once; or a T that is there
// already, so that an operation that seldom waits can be a plain function in the usual case. The
// Task owns the coroutine. Nothing throws through one: an exception ends the process, which closes
// the gateway.
template <typename T>
class [[nodiscard]] Task {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, Done, T>;

  struct promise_type : TaskResult<T> {
    std::coroutine_handle<> awaiting;

    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Resume {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().awaiting;
      }
      void await_resume() noexcept {}
    };
    Resume final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
  };

  // A task that is done already; Done{} if T is void.
  Task(Value value) : value_(std::move(value)) {}
  Task(Task&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), value_(std::move(other.value_)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // If true, Take gives the value without a co_await.
  bool ready() const noexcept { return value_.has_value(); }
  Value Take() { return std::move(*value_); }

  bool await_ready() const noexcept { return value_.has_value(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) {
      return value_.has_value() ? Take() : std::move(*handle_.promise().value);
    }
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
  std::optional<Value> value_;
};

}  // namespace gateway
