// SPDX-License-Identifier: Apache-2.0
// Inspects what a client sends over a WebSocket, message by message: bytes in, bytes for the server
// out. Pure except for the masks, which are random.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "codec/wire/websocket_frame.h"
#include "codec/wire/websocket_message.h"
#include "gateway/inspect/limits.h"

namespace gateway {

// Why a WebSocket is closed from here.
struct WebSocketEnd {
  codec::WebSocketClose close = codec::WebSocketClose::kProtocolError;
  std::string reason;  // Said in the close frame: ASCII, never a credential.
  // The peer broke the protocol; otherwise a judge said no, and has recorded it.
  bool is_fault = false;
};

// Judges which messages may pass.
class MessageJudge {
 public:
  virtual ~MessageJudge() = default;
  // Judges one whole text message, which it may change.
  virtual std::optional<WebSocketEnd> JudgeText(std::string& text) = 0;
  // Called when a binary message begins; it is never looked into.
  virtual std::optional<WebSocketEnd> JudgeBinary() = 0;
};

// Messages above kWebSocketSmallBytesMax, over all connections.
struct LargeMessages {
  size_t count = 0;    // That are being put together: kWebSocketLargeMax at most.
  size_t waiting = 0;  // For that: kWebSocketWaitingMax at most.
};

class WebSocketInspector {
 public:
  // `deflate` is true if permessage-deflate without context was agreed on. The rest is borrowed.
  WebSocketInspector(bool deflate, MessageJudge& judge, LargeMessages& large);
  ~WebSocketInspector();
  WebSocketInspector(const WebSocketInspector&) = delete;
  WebSocketInspector& operator=(const WebSocketInspector&) = delete;

  // Takes what the client sent next and appends to `out` what goes on to the server: each text
  // message as one frame of its own, uncompressed, once it was judged; control frames at once;
  // binary frames as they come. With an end nothing more is fed; what is in `out` may still go.
  std::optional<WebSocketEnd> Feed(std::string_view in, std::string& out);

  // True if the message under way is large, and there are as many of those as may be: Feed holds
  // the rest of what it was given until it is called again, with nothing, when there is room.
  bool lacks_room() const { return lacks_room_; }

  // Returns since when a text message has been arriving; nullopt if none is.
  std::optional<std::chrono::steady_clock::time_point> assembling_since() const { return since_; }

 private:
  using Step = codec::WebSocketDecoder::Step;

  std::string& Target();
  std::optional<WebSocketEnd> Begin();
  std::optional<WebSocketEnd> Take(std::string_view bytes, const Step& step, std::string& out);
  std::optional<WebSocketEnd> EndControl(std::string& out);
  std::optional<WebSocketEnd> EndText(std::string& out);
  bool TakesLarge();
  void FreeLarge();

  codec::WebSocketDecoder decoder_;
  codec::WebSocketMessage message_;
  MessageJudge& judge_;
  LargeMessages& large_;
  bool holds_large_ = false;
  bool lacks_room_ = false;
  std::string held_;     // The beginning of a frame's head, or what waits for room.
  std::string control_;  // The payload of the control frame that is being read.
  std::string dropped_;  // Payload of binary frames, which pass as they are.
  std::optional<std::chrono::steady_clock::time_point> since_;
};

// Makes an unpredictable mask (RFC 6455, 10.3).
codec::WebSocketMask NewWebSocketMask();

}  // namespace gateway
