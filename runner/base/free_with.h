// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deleter for std::unique_ptr that frees what a C library made by the function for it.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
