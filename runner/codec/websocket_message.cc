// SPDX-License-Identifier: Apache-2.0
#include "codec/websocket_message.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "codec/utf8.h"

namespace codec {
namespace {

// Owns zlib's state.
class Inflater {
 public:
  Inflater() { ENSURE(::inflateInit2(&stream_, -MAX_WBITS) == Z_OK); }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_ = {};
};

// Inflates what `in` holds; false: that is no deflated data, or it goes on behind its end.
// `out` stops growing one byte above `bytes_max`.
bool Inflate(Inflater* inflater, std::string_view in, size_t bytes_max, std::string* out) {
  z_stream& stream = inflater->stream();
  // zlib promises not to write through next_in; its type has no const.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  char buffer[16384];
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = static_cast<uInt>(std::min(sizeof buffer, bytes_max + 1 - out->size()));
    const size_t offered = stream.avail_out;
    const int result = ::inflate(&stream, Z_SYNC_FLUSH);
    out->append(buffer, offered - stream.avail_out);
    if (out->size() > bytes_max) return true;
    if (result == Z_STREAM_END) return stream.avail_in == 0;
    if (result != Z_OK && result != Z_BUF_ERROR) return false;
  } while (stream.avail_out == 0 || stream.avail_in > 0);
  return true;
}

}  // namespace

Result<std::optional<std::string>> InflateMessage(std::string_view payload, size_t bytes_max) {
  // What a sender leaves out of each message (RFC 7692, 7.2.1): the empty block that ends it.
  constexpr std::string_view kTail("\x00\x00\xff\xff", 4);
  Inflater inflater;
  std::string out;
  const std::string whole = std::string(payload).append(kTail);
  if (!Inflate(&inflater, whole, bytes_max, &out)) return Error{Code::kInvalid, "not deflated"};
  if (out.size() > bytes_max) return std::optional<std::string>();
  return std::optional(std::move(out));
}

std::optional<WebSocketFault> WebSocketMessage::Begin(const WebSocketFrame& frame) {
  if (fragments_ == 0) is_compressed_ = frame.is_compressed;
  if (++fragments_ > bounds_.fragments_max) {
    return WebSocketFault{WebSocketClose::kTooBig, "a message of too many fragments"};
  }
  if (frame.length > bounds_.bytes_max - announced_) {
    return WebSocketFault{WebSocketClose::kTooBig, "a message is too long"};
  }
  announced_ += static_cast<size_t>(frame.length);
  return std::nullopt;
}

std::optional<WebSocketFault> WebSocketMessage::Finish(std::string* text) {
  std::string message = std::exchange(payload_, {});
  fragments_ = 0;
  announced_ = 0;
  if (is_compressed_) {
    Result<std::optional<std::string>> inflated = InflateMessage(message, bounds_.bytes_max);
    if (!inflated.ok()) {
      return WebSocketFault{WebSocketClose::kNotUtf8, "a message that does not inflate"};
    }
    if (!inflated.value().has_value()) {
      return WebSocketFault{WebSocketClose::kTooBig, "a message is too long"};
    }
    message = *std::move(inflated).value();
  }
  if (FindInvalidUtf8(message) != std::string_view::npos) {
    return WebSocketFault{WebSocketClose::kNotUtf8, "text that is not UTF-8"};
  }
  *text = std::move(message);
  return std::nullopt;
}

}  // namespace codec
