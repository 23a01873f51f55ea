// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace gateway {

// A coroutine that starts when it is awaited and gives a T to whoever awaits it, once; or a T that
// is there already: what seldom has to wait is a plain function for the usual case. The Task owns
// the coroutine. Nothing throws through one: an exception ends the process, which closes the
// gateway.
template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::optional<T> value;
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
    template <typename U>
    void return_value(U&& given) {
      value.emplace(std::forward<U>(given));
    }
    void unhandled_exception() { std::terminate(); }
  };

  // Nothing has to be waited for.
  Task(T value) : value_(std::move(value)) {}
  Task(Task&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), value_(std::move(other.value_)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // With true, Take gives the value without a co_await.
  bool ready() const noexcept { return value_.has_value(); }
  T Take() { return std::move(*value_); }

  bool await_ready() const noexcept { return value_.has_value(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  T await_resume() { return value_.has_value() ? Take() : std::move(*handle_.promise().value); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
  std::optional<T> value_;
};

}  // namespace gateway
