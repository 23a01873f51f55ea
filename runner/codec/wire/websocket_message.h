// SPDX-License-Identifier: Apache-2.0
// Assembles text messages of a WebSocket from their frames.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/wire/websocket_frame.h"

namespace codec {

// The bounds on one message in memory. A compressed one counts before and after inflation.
struct WebSocketMessageBounds {
  size_t bytes_max = 0;
  size_t fragments_max = 0;
};

// Gathers one text message after the other. The decoder has judged the order of the frames.
class WebSocketMessage {
 public:
  explicit WebSocketMessage(const WebSocketMessageBounds& bounds) : bounds_(bounds) {}

  // Called when a frame of the message begins.
  std::optional<WebSocketFault> Begin(const WebSocketFrame& frame);
  // Returns the buffer in which WebSocketDecoder::Next puts the payload. Never holds more than
  // `bytes_max` when Begin is called first.
  std::string* payload() { return &payload_; }
  // Called when the final frame has ended: the message is inflated, checked to be UTF-8 and moved
  // to `text`.
  std::optional<WebSocketFault> Finish(std::string* text);

 private:
  WebSocketMessageBounds bounds_;
  std::string payload_;
  size_t fragments_ = 0;
  size_t announced_ = 0;  // The frames' lengths together.
  bool is_compressed_ = false;
};

// Takes permessage-deflate (RFC 7692) off one message that shares no context with others. Returns
// nullopt if it would be longer than `bytes_max`. Fails with kInvalid for what is not deflated.
Result<std::optional<std::string>> InflateMessage(std::string_view payload, size_t bytes_max);

}  // namespace codec
