// SPDX-License-Identifier: Apache-2.0
// WebSocket frames (RFC 6455, section 5): parsed strictly as they arrive, and rendered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace codec {

enum class WebSocketOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};
inline bool IsControl(WebSocketOpcode opcode) { return opcode >= WebSocketOpcode::kClose; }

// Why a connection is closed (RFC 6455, 7.4.1, and its registry).
enum class WebSocketClose : uint16_t {
  kNormal = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kNotText = 1003,  // A binary message, where only text can be read.
  kNotUtf8 = 1007,
  kPolicy = 1008,
  kTooBig = 1009,
  kInternalError = 1011,
  kRestart = 1012,   // The policy changed.
  kTryLater = 1013,  // Too much at once.
};

// A peer's violation of the protocol, and the code to close with.
struct WebSocketFault {
  WebSocketClose close = WebSocketClose::kProtocolError;
  std::string_view what;  // Static.
};

// One frame without its payload.
struct WebSocketFrame {
  WebSocketOpcode opcode = WebSocketOpcode::kText;
  bool is_final = true;
  bool is_compressed = false;  // RSV1: only on the first frame of a message.
  uint64_t length = 0;         // The length of the payload in bytes.
};

// Takes the frames of one direction apart. Knows their order, so that each is judged in its place;
// holds no payload.
class WebSocketDecoder {
 public:
  enum class Sender { kClient, kServer };  // Clients mask what they send, servers do not.

  // `deflate` is true if permessage-deflate was agreed on. Data frames above `frame_bytes_max` are
  // a fault.
  WebSocketDecoder(Sender sender, bool deflate, uint64_t frame_bytes_max)
      : sender_(sender), deflate_(deflate), frame_bytes_max_(frame_bytes_max) {}

  struct Step {
    size_t consumed = 0;                  // Bytes of `in` that are done with; 0 if more are needed.
    bool begins = false;                  // They are the head of a frame: frame() is that frame.
    bool ends = false;                    // They are the last of frame().
    std::optional<WebSocketFault> fault;  // The fault of the frame that begins; nothing may follow.
  };

  // Reads on: one head, or what there is of one payload, which is appended to `payload` unmasked.
  // If nothing is consumed `in` must be offered again, longer; at most kHeadBytesMax are ever
  // needed.
  Step Next(std::string_view in, std::string* payload);

  // Returns the frame that is being read, or was read last.
  const WebSocketFrame& frame() const { return frame_; }
  // Returns the kind of the message that frame() belongs to, when it is not a control frame.
  WebSocketOpcode message() const { return message_; }
  // True between two frames.
  bool at_boundary() const { return left_ == 0; }

  static constexpr size_t kHeadBytesMax = 14;

 private:
  std::optional<WebSocketFault> Check(const WebSocketFrame& frame, uint8_t reserved) const;
  Step NextHead(std::string_view in);

  Sender sender_;
  bool deflate_;
  uint64_t frame_bytes_max_;
  WebSocketFrame frame_;
  WebSocketOpcode message_ = WebSocketOpcode::kText;
  bool in_message_ = false;
  bool closed_ = false;
  uint64_t left_ = 0;
  std::array<uint8_t, 4> mask_{};
  size_t mask_at_ = 0;
};

// The content of a close frame. `code` is 1005 when it says nothing (which is never sent).
struct WebSocketCloseReason {
  uint16_t code = 1005;
  std::string reason;
};
// Reads the payload of a close frame. Fails with kInvalid: one byte, a code that may not be sent, a
// reason that is not UTF-8.
Result<WebSocketCloseReason> ParseWebSocketClose(std::string_view payload);
// Renders the payload of a close frame: what does not fit of `reason`, which is ASCII, is cut off.
std::string RenderWebSocketClose(WebSocketClose code, std::string_view reason);

using WebSocketMask = std::array<uint8_t, 4>;
// Renders a whole frame; `frame.length` is taken from the payload. A client's frame needs an
// unpredictable mask; a server's has none.
std::string RenderWebSocketFrame(const WebSocketFrame& frame, std::string_view payload,
                                 const std::optional<WebSocketMask>& mask);

}  // namespace codec
