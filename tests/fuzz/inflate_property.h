// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "image/unpack/inflate.h"

namespace inflate_property {

constexpr size_t kUnpackedMax = 1 << 20;  // A bomb has its bound elsewhere.

inline std::string Unpack(std::string_view packed, size_t in_step, size_t out_step) {
  std::string text;
  Result<std::unique_ptr<image::Inflater>> inflater =
      image::Inflater::Open([packed, in_step]() mutable -> Result<std::string_view> {
        std::string_view next = packed.substr(0, in_step);
        packed.remove_prefix(next.size());
        return next;
      });
  if (!inflater.ok()) return "not opened";
  std::string out(out_step, '\0');
  while (text.size() < kUnpackedMax) {
    Result<size_t> n = inflater.value()->Read(out);
    if (!n.ok()) return "error";
    if (n.value() == 0) return "ok " + text;
    ENSURE(n.value() <= out.size());
    text.append(out, 0, n.value());
  }
  return "large";
}

// How the bytes come, and how they are taken, changes nothing.
inline void Check(const uint8_t* data, size_t size) {
  if (size < 2) return;
  std::string_view packed(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::string whole = Unpack(packed, SIZE_MAX, 1 << 16);
  std::string split = Unpack(packed, size_t{data[0]} + 1, size_t{data[1]} + 1);
  ENSURE(whole == split);
}

}  // namespace inflate_property
