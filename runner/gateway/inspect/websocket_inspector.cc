// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_inspector.h"

#include <openssl/rand.h>

#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

using codec::WebSocketOpcode;

std::optional<WebSocketEnd> EndOf(const std::optional<codec::WebSocketFault>& fault) {
  if (!fault.has_value()) return std::nullopt;
  return WebSocketEnd{fault->close, std::string(fault->what), true};
}

std::string RenderFrame(WebSocketOpcode opcode, std::string_view payload) {
  return codec::RenderWebSocketFrame({opcode, true, false, 0}, payload, NewWebSocketMask());
}

}  // namespace

codec::WebSocketMask NewWebSocketMask() {
  codec::WebSocketMask mask;
  ENSURE(::RAND_bytes(mask.data(), static_cast<int>(mask.size())) == 1);
  return mask;
}

WebSocketInspector::WebSocketInspector(bool deflate, MessageJudge& judge, LargeMessages& large)
    : decoder_(codec::WebSocketDecoder::Sender::kClient, deflate, kWebSocketFrameBytesMax),
      message_({kWebSocketMessageBytesMax, kWebSocketFragmentsMax}),
      judge_(judge),
      large_(large) {}

WebSocketInspector::~WebSocketInspector() { FreeLarge(); }

std::optional<WebSocketEnd> WebSocketInspector::Feed(std::string_view in, std::string& out) {
  std::string joined;
  if (!held_.empty()) {
    joined = std::move(held_.append(in));
    in = joined;
  }
  for (;;) {
    lacks_room_ = !TakesLarge();
    if (lacks_room_) break;
    const Step step = decoder_.Next(in, &Target());
    if (step.fault.has_value()) return EndOf(step.fault);
    if (step.consumed == 0) break;
    std::optional<WebSocketEnd> end = Take(in.substr(0, step.consumed), step, out);
    if (end.has_value()) return end;
    in.remove_prefix(step.consumed);
  }
  held_ = std::string(in);
  return std::nullopt;
}

// Returns where the payload of the current frame goes.
std::string& WebSocketInspector::Target() {
  if (IsControl(decoder_.frame().opcode)) return control_;
  return decoder_.message() == WebSocketOpcode::kText ? *message_.payload() : dropped_;
}

std::optional<WebSocketEnd> WebSocketInspector::Take(std::string_view bytes, const Step& step,
                                                     std::string& out) {
  const bool is_control = IsControl(decoder_.frame().opcode);
  const bool is_binary = !is_control && decoder_.message() == WebSocketOpcode::kBinary;
  if (step.begins) {
    std::optional<WebSocketEnd> end = Begin();
    if (end.has_value()) return end;
  }
  dropped_.clear();
  if (is_binary) out += bytes;
  if (!step.ends || is_binary) return std::nullopt;
  if (is_control) return EndControl(out);
  return decoder_.frame().is_final ? EndText(out) : std::nullopt;
}

std::optional<WebSocketEnd> WebSocketInspector::Begin() {
  const codec::WebSocketFrame& frame = decoder_.frame();
  if (IsControl(frame.opcode)) {
    control_.clear();
    return std::nullopt;
  }
  if (frame.opcode == WebSocketOpcode::kBinary) return judge_.JudgeBinary();
  if (decoder_.message() == WebSocketOpcode::kBinary) return std::nullopt;
  if (!since_.has_value()) since_ = std::chrono::steady_clock::now();
  return EndOf(message_.Begin(frame));
}

std::optional<WebSocketEnd> WebSocketInspector::EndControl(std::string& out) {
  const WebSocketOpcode opcode = decoder_.frame().opcode;
  if (opcode == WebSocketOpcode::kClose) {
    Result<codec::WebSocketCloseReason> reason = codec::ParseWebSocketClose(control_);
    if (!reason.ok()) {
      return WebSocketEnd{codec::WebSocketClose::kProtocolError, reason.error().what, true};
    }
  }
  out += RenderFrame(opcode, control_);
  return std::nullopt;
}

std::optional<WebSocketEnd> WebSocketInspector::EndText(std::string& out) {
  std::string text;
  std::optional<WebSocketEnd> end = EndOf(message_.Finish(&text));
  since_.reset();
  FreeLarge();
  if (!end.has_value()) end = judge_.JudgeText(text);
  if (end.has_value()) return end;
  out += RenderFrame(WebSocketOpcode::kText, text);
  return std::nullopt;
}

// Returns false if the message has grown large, and there are as many of those as may be.
bool WebSocketInspector::TakesLarge() {
  if (holds_large_ || message_.payload()->size() <= kWebSocketSmallBytesMax) return true;
  if (large_.count >= kWebSocketLargeMax) return false;
  ++large_.count;
  holds_large_ = true;
  return true;
}

void WebSocketInspector::FreeLarge() {
  if (holds_large_) --large_.count;
  holds_large_ = false;
}

}  // namespace gateway
