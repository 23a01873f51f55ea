// SPDX-License-Identifier: Apache-2.0
#pragma once

// For std::unique_ptr: what a C library made is freed by the function that belongs to it.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
