// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_frame.h"

#include <algorithm>

#include "codec/data/byte_reader.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr uint8_t kFinal = 0x80;
constexpr uint8_t kCompressed = 0x40;
constexpr uint8_t kReserved = 0x30;
constexpr uint8_t kMasked = 0x80;
constexpr size_t kControlBytesMax = 125;

bool IsKnown(uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

// Codes that may stand in a close frame (RFC 6455, 7.4, and the registry's later ones).
bool IsSendable(uint64_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

WebSocketDecoder::Step Fault(WebSocketFault fault) {
  WebSocketDecoder::Step step;
  step.fault = fault;
  return step;
}

}  // namespace

std::optional<WebSocketFault> WebSocketDecoder::Check(const WebSocketFrame& frame,
                                                      uint8_t reserved) const {
  const auto protocol = [](std::string_view what) {
    return WebSocketFault{WebSocketClose::kProtocolError, what};
  };
  if (closed_) return protocol("a frame after the close frame");
  if (reserved != 0) return protocol("a reserved bit is set");
  if (IsControl(frame.opcode)) {
    if (frame.is_compressed) return protocol("a compressed control frame");
    if (!frame.is_final) return protocol("a fragmented control frame");
    if (frame.length > kControlBytesMax) return protocol("a control frame is too long");
    return std::nullopt;
  }
  const bool continues = frame.opcode == WebSocketOpcode::kContinuation;
  if (continues && !in_message_) return protocol("a continuation without a message");
  if (!continues && in_message_) return protocol("a message starts inside another");
  if (frame.is_compressed && (!deflate_ || continues)) {
    return protocol("compressed without negotiation");
  }
  if (frame.length > frame_bytes_max_) {
    return WebSocketFault{WebSocketClose::kTooBig, "a frame is too long"};
  }
  return std::nullopt;
}

WebSocketDecoder::Step WebSocketDecoder::NextHead(std::string_view in) {
  ByteReader reader(in);
  const uint8_t first = static_cast<uint8_t>(reader.TakeNumber(1));
  const uint8_t second = static_cast<uint8_t>(reader.TakeNumber(1));
  const bool masked = (second & kMasked) != 0;
  const uint8_t short_length = second & 0x7f;
  const size_t long_bytes = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
  const uint64_t length = long_bytes == 0 ? short_length : reader.TakeNumber(long_bytes);
  const std::string_view mask = reader.Take(masked ? 4 : 0);
  if (reader.failed()) return {};

  const uint8_t opcode = first & 0x0f;
  if (!IsKnown(opcode)) return Fault({WebSocketClose::kProtocolError, "an unknown opcode"});
  if (masked != (sender_ == Sender::kClient)) {
    return Fault({WebSocketClose::kProtocolError, masked ? "a masked frame" : "an unmasked frame"});
  }
  if ((long_bytes == 2 && length < 126) || (long_bytes == 8 && length < 0x10000) ||
      length > static_cast<uint64_t>(INT64_MAX)) {
    return Fault({WebSocketClose::kProtocolError, "a length that is not minimally encoded"});
  }
  const WebSocketFrame frame{static_cast<WebSocketOpcode>(opcode), (first & kFinal) != 0,
                             (first & kCompressed) != 0, length};
  if (std::optional<WebSocketFault> fault = Check(frame, first & kReserved)) return Fault(*fault);

  frame_ = frame;
  if (frame.opcode == WebSocketOpcode::kClose) closed_ = true;
  if (!IsControl(frame.opcode)) {
    if (!in_message_) message_ = frame.opcode;
    in_message_ = !frame.is_final;
  }
  std::copy(mask.begin(), mask.end(), mask_.begin());
  mask_at_ = 0;
  left_ = length;
  return Step{in.size() - reader.left().size(), true, length == 0, {}};
}

WebSocketDecoder::Step WebSocketDecoder::Next(std::string_view in, std::string* payload) {
  if (left_ == 0) return NextHead(in);
  const std::string_view piece =
      in.substr(0, static_cast<size_t>(std::min<uint64_t>(left_, in.size())));
  const size_t begin = payload->size();
  payload->append(piece);
  if (sender_ == Sender::kClient) {
    for (size_t i = begin; i < payload->size(); ++i) {
      (*payload)[i] = static_cast<char>((*payload)[i] ^ mask_[mask_at_]);
      mask_at_ = (mask_at_ + 1) % mask_.size();
    }
  }
  left_ -= piece.size();
  return Step{piece.size(), false, left_ == 0, {}};
}

Result<WebSocketCloseReason> ParseWebSocketClose(std::string_view payload) {
  if (payload.empty()) return WebSocketCloseReason{};
  ByteReader reader(payload);
  const uint64_t code = reader.TakeNumber(2);
  if (reader.failed() || !IsSendable(code)) return Error{Code::kInvalid, "an invalid close code"};
  if (FindInvalidUtf8(reader.left()) != std::string_view::npos) {
    return Error{Code::kInvalid, "a close reason that is not UTF-8"};
  }
  return WebSocketCloseReason{static_cast<uint16_t>(code), std::string(reader.left())};
}

std::string RenderWebSocketClose(WebSocketClose code, std::string_view reason) {
  const unsigned number = static_cast<unsigned>(code);
  std::string payload = {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
  payload += reason.substr(0, kControlBytesMax - payload.size());
  return payload;
}

std::string RenderWebSocketFrame(const WebSocketFrame& frame, std::string_view payload,
                                 const std::optional<WebSocketMask>& mask) {
  ENSURE(!IsControl(frame.opcode) || payload.size() <= kControlBytesMax);
  const uint64_t length = payload.size();
  const size_t long_bytes = length < 126 ? 0 : length < 0x10000 ? 2 : 8;
  const unsigned short_length =
      long_bytes == 0 ? static_cast<unsigned>(length) : (long_bytes == 2 ? 126u : 127u);
  std::string out;
  out.reserve(WebSocketDecoder::kHeadBytesMax + payload.size());
  out += static_cast<char>((frame.is_final ? kFinal : 0) | (frame.is_compressed ? kCompressed : 0) |
                           static_cast<uint8_t>(frame.opcode));
  out += static_cast<char>((mask.has_value() ? kMasked : 0) | short_length);
  for (size_t i = long_bytes; i-- > 0;) out += static_cast<char>(length >> (8 * i));
  if (!mask.has_value()) return out.append(payload);
  out.append(mask->begin(), mask->end());
  for (size_t i = 0; i < payload.size(); ++i) {
    out += static_cast<char>(payload[i] ^ (*mask)[i % mask->size()]);
  }
  return out;
}

}  // namespace codec
