// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_frame.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

using Opcode = WebSocketOpcode;
using Sender = WebSocketDecoder::Sender;
constexpr WebSocketMask kMask = {1, 2, 3, 4};
constexpr uint64_t kFrameBytesMax = 1 << 20;

struct Seen {
  std::vector<std::pair<WebSocketFrame, std::string>> frames;  // Complete ones.
  std::optional<WebSocketFault> fault;
};

// Feeds `in` in steps of `step` bytes, as a connection does.
Seen Decode(WebSocketDecoder decoder, const std::string& in, size_t step = SIZE_MAX) {
  Seen seen;
  std::string payload;
  size_t at = 0;
  size_t available = std::min(step, in.size());
  while (true) {
    WebSocketDecoder::Step next =
        decoder.Next(std::string_view(in).substr(at, available - at), &payload);
    at += next.consumed;
    if (next.ends) seen.frames.emplace_back(decoder.frame(), std::exchange(payload, {}));
    seen.fault = next.fault;
    if (next.fault.has_value()) return seen;
    if (next.consumed > 0) continue;
    if (available == in.size()) return seen;
    available = std::min(available + step, in.size());
  }
}

WebSocketDecoder FromClient(bool deflate = false) {
  return WebSocketDecoder(Sender::kClient, deflate, kFrameBytesMax);
}

std::string Text(const std::string& payload) {
  return RenderWebSocketFrame({Opcode::kText}, payload, kMask);
}
std::string Part(Opcode opcode, bool is_final, const std::string& payload = "p") {
  return RenderWebSocketFrame({opcode, is_final}, payload, kMask);
}

TEST_CASE("RFC 6455's examples are read and written") {
  const std::string masked("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  Seen seen = Decode(FromClient(), masked);
  REQUIRE(seen.frames.size() == 1);
  CHECK(seen.frames[0].second == "Hello");
  CHECK(RenderWebSocketFrame({Opcode::kText}, "Hello", WebSocketMask{0x37, 0xfa, 0x21, 0x3d}) ==
        masked);
  const std::string plain = "\x81\x05Hello";
  CHECK(RenderWebSocketFrame({Opcode::kText}, "Hello", std::nullopt) == plain);
  Seen server = Decode({Sender::kServer, false, kFrameBytesMax}, plain);
  REQUIRE(server.frames.size() == 1);
  CHECK(server.frames[0].second == "Hello");
}

TEST_CASE("Frames of every length survive being written, split anywhere and read") {
  for (size_t size : {0, 1, 125, 126, 127, 65535, 65536, 70000}) {
    const std::string payload(size, 'x');
    const std::string wire = Text(payload);
    CHECK(wire.size() == size + 6 + (size < 126 ? 0 : size < 65536 ? 2 : 8));
    for (size_t step : {size_t{1}, size_t{7}, size_t{5000}, SIZE_MAX}) {
      if (size > 1000 && step == 1) continue;
      Seen seen = Decode(FromClient(), wire + Text("next"), step);
      REQUIRE(seen.frames.size() == 2);
      CHECK(seen.frames[0].first.length == size);
      CHECK(seen.frames[0].second == payload);
      CHECK(seen.frames[1].second == "next");
    }
  }
}

TEST_CASE("A message in fragments has control frames between them, not other messages") {
  const std::string begin = Part(Opcode::kText, false);
  Seen seen =
      Decode(FromClient(), begin + Part(Opcode::kPing, true) + Part(Opcode::kContinuation, false) +
                               Part(Opcode::kContinuation, true) + Text("a"));
  CHECK_FALSE(seen.fault.has_value());
  CHECK(seen.frames.size() == 5);
  CHECK(Decode(FromClient(), begin + Text("a")).fault->what == "a message starts inside another");
  CHECK(Decode(FromClient(), Part(Opcode::kContinuation, true)).fault->what ==
        "a continuation without a message");
  CHECK(Decode(FromClient(), Text("a") + Part(Opcode::kContinuation, true)).fault->what ==
        "a continuation without a message");
}

TEST_CASE("A decoder knows the kind of message that a continuation belongs to") {
  WebSocketDecoder decoder = FromClient();
  std::string payload;
  const std::string wire = Part(Opcode::kBinary, false, "") + Part(Opcode::kContinuation, true, "");
  size_t at = decoder.Next(wire, &payload).consumed;
  decoder.Next(std::string_view(wire).substr(at), &payload);
  CHECK(decoder.frame().opcode == Opcode::kContinuation);
  CHECK(decoder.message() == Opcode::kBinary);
  CHECK(decoder.at_boundary());
}

TEST_CASE("Clients mask and servers do not") {
  const std::string plain = RenderWebSocketFrame({Opcode::kText}, "a", std::nullopt);
  CHECK(Decode(FromClient(), plain).fault->what == "an unmasked frame");
  CHECK(Decode({Sender::kServer, false, kFrameBytesMax}, Text("a")).fault->what ==
        "a masked frame");
}

TEST_CASE("Control frames are short, whole and not compressed") {
  CHECK(Decode(FromClient(), Part(Opcode::kPing, true, std::string(125, 'x'))).frames.size() == 1);
  CHECK(Decode(FromClient(), std::string("\x89\xfe\x00\x7e\0\0\0\0", 8)).fault->what ==
        "a control frame is too long");
  CHECK(Decode(FromClient(), Part(Opcode::kPong, false)).fault->what ==
        "a fragmented control frame");
  CHECK(Decode(FromClient(true), RenderWebSocketFrame({Opcode::kPing, true, true}, "", kMask))
            .fault->what == "a compressed control frame");
}

TEST_CASE("Nothing follows a close frame") {
  CHECK(Decode(FromClient(), Part(Opcode::kClose, true, "")).frames.size() == 1);
  CHECK(Decode(FromClient(), Part(Opcode::kClose, true, "") + Text("a")).fault->what ==
        "a frame after the close frame");
}

TEST_CASE("Reserved bits and opcodes are refused, RSV1 but where it was agreed on") {
  const std::string compressed = RenderWebSocketFrame({Opcode::kText, false, true}, "a", kMask);
  CHECK(Decode(FromClient(true), compressed).frames[0].first.is_compressed);
  CHECK(Decode(FromClient(false), compressed).fault->close == WebSocketClose::kProtocolError);
  const std::string again = RenderWebSocketFrame({Opcode::kContinuation, true, true}, "a", kMask);
  CHECK(Decode(FromClient(true), compressed + again).fault.has_value());
  for (const char* head :
       {"\xa1\x80", "\x91\x80", "\x83\x80", "\x87\x80", "\x8b\x80", "\x8f\x80"}) {
    CHECK(Decode(FromClient(true), std::string(head) + "mask").fault.has_value());
  }
}

TEST_CASE("A length in the wrong form, and one above the bound, is refused") {
  const auto fault = [](std::string wire) { return Decode(FromClient(), wire + "mask").fault; };
  CHECK(fault(std::string("\x81\xfe\x00\x7d", 4))->what ==
        "a length that is not minimally encoded");
  CHECK_FALSE(fault(std::string("\x81\xfe\x00\x7e", 4)).has_value());
  CHECK(fault(std::string("\x81\xff\0\0\0\0\0\0\xff\xff", 10))->what ==
        "a length that is not minimally encoded");
  CHECK_FALSE(fault(std::string("\x81\xff\0\0\0\0\0\x10\0\0", 10)).has_value());
  CHECK(fault(std::string("\x81\xff\0\0\0\0\0\x10\0\x01", 10))->close == WebSocketClose::kTooBig);
  CHECK(fault(std::string("\x81\xff\x80\0\0\0\0\0\0\0", 10))->close ==
        WebSocketClose::kProtocolError);
}

TEST_CASE("A close frame says a code that may be sent and a reason in UTF-8") {
  CHECK(ParseWebSocketClose("").value().code == 1005);
  CHECK(ParseWebSocketClose(std::string("\x03\xe8", 2) + "bye").value().reason == "bye");
  CHECK(ParseWebSocketClose(RenderWebSocketClose(WebSocketClose::kPolicy, "no")).value().code ==
        1008);
  CHECK(RenderWebSocketClose(WebSocketClose::kPolicy, std::string(500, 'x')).size() == 125);
  for (unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1015u, 2999u, 5000u}) {
    INFO(code);
    const std::string bytes = {static_cast<char>(code >> 8), static_cast<char>(code)};
    CHECK_FALSE(ParseWebSocketClose(bytes).ok());
  }
  CHECK(ParseWebSocketClose("\x0f\xa0").value().code == 4000);
  CHECK_FALSE(ParseWebSocketClose("\x03").ok());
  CHECK_FALSE(ParseWebSocketClose("\x03\xe8\xff").ok());
}

}  // namespace
}  // namespace codec
