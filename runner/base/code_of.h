// SPDX-License-Identifier: Apache-2.0
// For unit tests, which claim the kind of a refusal: with ok() alone, another failure passes too.
#pragma once

#include <optional>

#include "base/result.h"

// Returns the code of the error; nullopt for a value.
template <typename T>
std::optional<Code> CodeOf(const Result<T>& result) {
  if (result.ok()) return std::nullopt;
  return result.error().code;
}
