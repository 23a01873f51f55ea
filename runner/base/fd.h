// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/result.h"

// Owns one descriptor. A function that takes Fd keeps it; one that takes int borrows it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int raw) : raw_(raw) {}
  Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Close();
      raw_ = std::exchange(other.raw_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Close(); }

  bool valid() const { return raw_ >= 0; }
  int get() const { return raw_; }
  // Gives the descriptor up: the caller owns it now.
  int Take() { return std::exchange(raw_, -1); }
  void Close() {
    if (raw_ >= 0)
      ENSURE(::close(std::exchange(raw_, -1)) == 0 || errno != EBADF);  // Closed twice.
  }

 private:
  int raw_ = -1;
};
