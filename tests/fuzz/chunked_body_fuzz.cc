// SPDX-License-Identifier: Apache-2.0
// Chunked bodies: how the bytes are split on their way changes nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/wire/chunked_body.h"

namespace {

struct Decoded {
  bool ok = true;
  bool finished = false;
  std::string body;
  size_t consumed = 0;

  bool operator==(const Decoded&) const = default;
};

// Feeds `in` in steps of `step` bytes.
Decoded Decode(std::string_view in, size_t step) {
  codec::ChunkedDecoder decoder;
  Decoded result;
  size_t available = 0;
  while (!result.finished) {
    Result<codec::ChunkedDecoder::Piece> piece =
        decoder.Next(in.substr(result.consumed, available - result.consumed));
    result.ok = piece.ok();
    if (!result.ok) break;
    ENSURE(piece.value().consumed <= available - result.consumed);
    ENSURE(piece.value().data.size() <= piece.value().consumed);
    result.body += piece.value().data;
    result.consumed += piece.value().consumed;
    result.finished = piece.value().finished;
    if (piece.value().consumed > 0 || result.finished) continue;
    if (available == in.size()) break;
    available = std::min(available + step, in.size());
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = size_t{data[0]} + 1;
  const std::string_view in(reinterpret_cast<const char*>(data) + 1, size - 1);
  Decoded whole = Decode(in, SIZE_MAX / 2);
  Decoded split = Decode(in, step);
  ENSURE(whole.ok == split.ok && whole.finished == split.finished);
  ENSURE(!whole.finished || whole == split);
  if (!whole.finished) return 0;
  std::string again;
  if (!whole.body.empty()) {
    again = codec::RenderChunkHead(whole.body.size()) + whole.body + "\r\n";
  }
  again += codec::RenderLastChunk({});
  ENSURE(Decode(again, step).body == whole.body && Decode(again, step).finished);
  return 0;
}
