// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

// Bytes of this process alone: a process that it forks or clones sees zeros in their place, a core
// dump has none of them, and they are overwritten when this ends. For secrets that the supervisor
// keeps while it starts what must not have them. Move-only.
class UnforkedBytes {
 public:
  UnforkedBytes() = default;
  // Fails with kIo, or with kUnsupported on a kernel that cannot keep them from a fork
  // (before 4.14).
  static Result<UnforkedBytes> Copy(std::string_view bytes);
  UnforkedBytes(UnforkedBytes&& other) noexcept;
  UnforkedBytes& operator=(UnforkedBytes&& other) noexcept;
  UnforkedBytes(const UnforkedBytes&) = delete;
  UnforkedBytes& operator=(const UnforkedBytes&) = delete;
  ~UnforkedBytes();

  // Returns the bytes, borrowed, valid while this object or one that was moved from it lives.
  std::string_view reveal() const { return {bytes_, size_}; }

 private:
  char* bytes_ = nullptr;
  size_t size_ = 0;
};
