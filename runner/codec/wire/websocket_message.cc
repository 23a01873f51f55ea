// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_message.h"

#include <algorithm>
#include <utility>

#include "codec/data/inflater.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

// Inflates what `in` holds. Returns false if that is not deflated data, or continues past its end.
// `out` stops growing one byte above `bytes_max`.
bool Inflate(std::string_view in, size_t bytes_max, std::string* out) {
  Inflater inflater(Inflater::Format::kRaw);
  char buffer[16384];
  for (;;) {
    size_t room = std::min(sizeof buffer, bytes_max + 1 - out->size());
    size_t got = 0;
    Inflater::Progress progress = inflater.Inflate(in, buffer, room, got);
    out->append(buffer, got);
    if (out->size() > bytes_max) return true;
    if (progress == Inflater::Progress::kEnded) return in.empty();
    if (progress == Inflater::Progress::kBad) return false;
    if (got < room && in.empty()) return true;
  }
}

}  // namespace

Result<std::optional<std::string>> InflateMessage(std::string_view payload, size_t bytes_max) {
  // The empty block at the end of each message, which a sender leaves out (RFC 7692, 7.2.1).
  constexpr std::string_view kTail("\x00\x00\xff\xff", 4);
  std::string out;
  const std::string whole = std::string(payload).append(kTail);
  if (!Inflate(whole, bytes_max, &out)) return Error{Code::kInvalid, "not compressed"};
  if (out.size() > bytes_max) return std::optional<std::string>();
  return std::optional(std::move(out));
}

std::optional<WebSocketFault> WebSocketMessage::Begin(const WebSocketFrame& frame) {
  if (fragments_ == 0) is_compressed_ = frame.is_compressed;
  if (++fragments_ > bounds_.fragments_max) {
    return WebSocketFault{WebSocketClose::kTooBig, "the message has too many fragments"};
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
      return WebSocketFault{WebSocketClose::kNotUtf8, "the message cannot be decompressed"};
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
