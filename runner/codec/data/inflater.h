// SPDX-License-Identifier: Apache-2.0
// Deflated data (RFC 1950 to 1952) inflated piece by piece, into a buffer of any size.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct z_stream_s;

namespace codec {

class Inflater {
 public:
  enum class Format { kRaw, kZlibOrGzip };
  enum class Progress {
    kMore,   // There may be more in what was taken, or in what comes.
    kEnded,  // The data has ended; what is left of `in` lies behind it.
    kBad     // The data is malformed.
  };

  explicit Inflater(Format format);
  ~Inflater();

  // Takes from the front of `in`, writes at most `size` bytes (at least 1) to `out` and says
  // how many in `got`.
  Progress Inflate(std::string_view& in, char* out, size_t size, size_t& got);

 private:
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace codec
