// SPDX-License-Identifier: Apache-2.0
// Decompresses gzip, zstd or uncompressed data, distinguished by the first bytes, since media types
// can be wrong. Every member of a gzip file and every frame of a zstd file, skippable ones passed
// over, as eStargz and zstd:chunked layers need.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace image {

// zstd's own default bound: a frame may ask for 128 MiB of memory, not for 2 GiB.
inline constexpr int kZstdWindowLogMax = 27;

class Inflater {
 public:
  virtual ~Inflater() = default;

  // Puts the next unpacked bytes into `out`, which is not empty: how many, 0 at the end. Fails with
  // kInvalid if the input is broken, or ends too early.
  virtual Result<size_t> Read(std::span<char> out) = 0;

  // Bytes taken from the input so far.
  int64_t packed_bytes() const { return packed_bytes_; }

  // The next bytes of the input, valid until it is called again; empty at its end.
  using Input = std::function<Result<std::string_view>()>;

  // Reads the first bytes to see what they are.
  static Result<std::unique_ptr<Inflater>> Open(Input input);

 protected:
  explicit Inflater(Input input) : input_(std::move(input)) {}
  // Puts at least one byte into chunk_; returns false at the end of the input.
  Result<bool> Fill();

  Input input_;
  std::string_view chunk_;  // Not consumed yet.
  int64_t packed_bytes_ = 0;
};

}  // namespace image
