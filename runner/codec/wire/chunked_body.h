// SPDX-License-Identifier: Apache-2.0
// The chunked coding of HTTP/1: a strict decoder for bodies as they arrive, and the pieces to
// encode one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/wire/http_head.h"

namespace codec {

// Takes the chunked coding (RFC 9112, 7.1) off a body as it arrives, strictly: every line ends in
// CRLF, sizes are 1 to 15 hexadecimal digits. Chunk extensions are read and dropped.
class ChunkedDecoder {
 public:
  struct Piece {
    size_t consumed = 0;    // Bytes of `in` that are done with.
    std::string_view data;  // Part of `in`: body bytes, possibly none.
    bool finished = false;  // The body is over; `consumed` ends with its last byte.
  };

  // Reads on. With `consumed` 0 more bytes are needed than `in` has; `in` must then be offered
  // again, longer. Fails with kInvalid for what is not chunked, and for lines above kLineBytesMax.
  Result<Piece> Next(std::string_view in);

  // Returns whether the next bytes, if there are any, are part of the body itself.
  bool expects_data() const { return expect_ == Expect::kData; }
  // Returns the trailers, those that ParseTrailers lets through; complete once the body is
  // finished.
  const HttpFields& trailers() const { return trailers_; }

  static constexpr size_t kLineBytesMax = 4096;      // A chunk's size line, or one trailer.
  static constexpr size_t kTrailerBytesMax = 16384;  // All trailers together.

 private:
  enum class Expect { kSize, kData, kDataEnd, kTrailer, kNothing };

  Result<Piece> NextSize(std::string_view in);
  Result<Piece> NextTrailer(std::string_view in);

  Expect expect_ = Expect::kSize;
  uint64_t left_ = 0;
  std::string trailer_lines_;
  HttpFields trailers_;
};

// Renders the end of a chunked body: the last chunk, the trailers, the empty line.
std::string RenderLastChunk(const HttpFields& trailers);
// Renders "SIZE CRLF" for a chunk of `size` bytes; CRLF follows the data. Size 0 is not a chunk:
// the body ends with RenderLastChunk.
std::string RenderChunkHead(size_t size);

}  // namespace codec
