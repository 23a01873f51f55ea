// SPDX-License-Identifier: Apache-2.0
// A result whose failure is a reason why a signature does not count. TRY works with it as with
// Result.
#pragma once

#include <utility>
#include <variant>

#include "base/result.h"
#include "sigstore/trust/reason.h"

namespace sigstore {

// A value of T, or why the signature does not count. Like Result, and TRY works with it; a
// Rejection is not an Error, since a signature that does not verify is an ordinary answer.
template <typename T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Rejection rejection) : state_(std::in_place_index<1>, std::move(rejection)) {}

  bool ok() const { return state_.index() == 0; }
  T&& value() && {
    ENSURE(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const T& value() const& {
    ENSURE(ok());
    return *std::get_if<0>(&state_);
  }
  Rejection&& error() && {
    ENSURE(!ok());
    return std::move(*std::get_if<1>(&state_));
  }
  const Rejection& error() const& {
    ENSURE(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Rejection> state_;
};

// Passed, without a value.
using Check = Checked<Done>;
inline Check Pass() { return Done{}; }

}  // namespace sigstore
