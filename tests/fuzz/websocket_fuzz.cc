// SPDX-License-Identifier: Apache-2.0
// WebSocket: frames are the same however they are split, and when they are written again; what
// their text messages become keeps its bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/text/utf8.h"
#include "codec/wire/websocket_frame.h"
#include "codec/wire/websocket_message.h"

namespace {

using codec::WebSocketDecoder;
using Sender = WebSocketDecoder::Sender;

struct Frame {
  codec::WebSocketFrame head;
  std::string payload;

  bool operator==(const Frame& other) const {
    return head.opcode == other.head.opcode && head.is_final == other.head.is_final &&
           head.is_compressed == other.head.is_compressed && payload == other.payload;
  }
};

struct Decoded {
  std::vector<Frame> frames;
  std::string partial;
  bool fault = false;
};

constexpr uint64_t kFrameBytesMax = 4096;

Decoded Decode(Sender sender, bool deflate, std::string_view in, size_t step) {
  WebSocketDecoder decoder(sender, deflate, kFrameBytesMax);
  Decoded result;
  size_t at = 0;
  size_t available = std::min(step, in.size());
  while (true) {
    WebSocketDecoder::Step next = decoder.Next(in.substr(at, available - at), &result.partial);
    at += next.consumed;
    ENSURE(at <= available);
    result.fault = next.fault.has_value();
    if (result.fault) return result;
    ENSURE(result.partial.size() <= kFrameBytesMax);
    if (next.ends) {
      result.frames.push_back({decoder.frame(), std::exchange(result.partial, {})});
    }
    if (next.consumed > 0) continue;
    if (available == in.size()) return result;
    available = std::min(available + step, in.size());
  }
}

void Gather(const std::vector<Frame>& frames) {
  constexpr size_t kBytesMax = 2048;
  codec::WebSocketMessage message({kBytesMax, 8});
  bool in_text = false;
  for (const Frame& frame : frames) {
    if (IsControl(frame.head.opcode)) {
      if (frame.head.opcode == codec::WebSocketOpcode::kClose) {
        (void)codec::ParseWebSocketClose(frame.payload);
      }
      continue;
    }
    if (frame.head.opcode != codec::WebSocketOpcode::kContinuation) {
      in_text = frame.head.opcode == codec::WebSocketOpcode::kText;
    }
    if (!in_text) continue;
    if (message.Begin(frame.head)) return;
    *message.payload() += frame.payload;
    ENSURE(message.payload()->size() <= kBytesMax);
    if (!frame.head.is_final) continue;
    std::string text;
    if (message.Finish(&text)) return;
    ENSURE(text.size() <= kBytesMax);
    ENSURE(codec::FindInvalidUtf8(text) == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Sender sender = (data[0] & 1) != 0 ? Sender::kServer : Sender::kClient;
  const bool deflate = (data[0] & 2) != 0;
  const size_t step = size_t{data[1]} + 1;
  const std::string_view in(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Decoded whole = Decode(sender, deflate, in, SIZE_MAX / 2);
  const Decoded split = Decode(sender, deflate, in, step);
  ENSURE(whole.frames == split.frames && whole.fault == split.fault);
  ENSURE(whole.partial == split.partial);

  std::optional<codec::WebSocketMask> mask;
  if (sender == Sender::kClient) mask = codec::WebSocketMask{1, 2, 3, 255};
  std::string again;
  for (const Frame& frame : whole.frames) {
    again += codec::RenderWebSocketFrame(frame.head, frame.payload, mask);
  }
  const Decoded reread = Decode(sender, deflate, again, step);
  ENSURE(reread.frames == whole.frames && !reread.fault);
  Gather(whole.frames);
  return 0;
}
