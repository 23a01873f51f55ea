// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_inspector.h"

#include <catch2/catch.hpp>

#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

using codec::WebSocketClose;
using codec::WebSocketOpcode;
constexpr codec::WebSocketMask kMask = {9, 8, 7, 6};

// Refuses "no", and writes "[new]" for "old".
class TestJudge final : public MessageJudge {
 public:
  std::optional<WebSocketEnd> JudgeText(std::string& text) override {
    judged.push_back(text);
    if (text == "no") return WebSocketEnd{WebSocketClose::kPolicy, "not this"};
    if (text == "old") text = "[new]";
    return std::nullopt;
  }
  std::optional<WebSocketEnd> JudgeBinary() override {
    if (!binary_refused) return std::nullopt;
    return WebSocketEnd{WebSocketClose::kPolicy, "not binary"};
  }

  std::vector<std::string> judged;
  bool binary_refused = false;
};

std::string Frame(WebSocketOpcode opcode, const std::string& payload, bool is_final = true,
                  bool compressed = false) {
  return codec::RenderWebSocketFrame({opcode, is_final, compressed, 0}, payload, kMask);
}
std::string Text(const std::string& payload) { return Frame(WebSocketOpcode::kText, payload); }

// The frames that the server gets, each as "opcode:payload"; "+" when more of the message follows.
struct Sent {
  std::vector<std::string> frames;
  std::optional<WebSocketEnd> end;
};

struct Bench {
  TestJudge judge;
  LargeMessages large;
  bool deflate = false;

  Sent Feed(const std::string& in, size_t step = SIZE_MAX) {
    WebSocketInspector inspector(deflate, judge, large);
    Sent sent;
    std::string out;
    for (size_t at = 0; at < in.size() && !sent.end; at += std::min(step, in.size() - at)) {
      sent.end = inspector.Feed(std::string_view(in).substr(at, step), out);
    }
    codec::WebSocketDecoder decoder(codec::WebSocketDecoder::Sender::kClient, deflate,
                                    kWebSocketFrameBytesMax);
    std::string payload;
    for (std::string_view rest = out; !rest.empty();) {
      codec::WebSocketDecoder::Step next = decoder.Next(rest, &payload);
      REQUIRE(next.consumed > 0);
      rest.remove_prefix(next.consumed);
      if (!next.ends) continue;
      const codec::WebSocketFrame& frame = decoder.frame();
      sent.frames.push_back(std::to_string(static_cast<int>(frame.opcode)) +
                            (frame.is_final ? ":" : "+:") + std::exchange(payload, {}));
    }
    return sent;
  }
};

using Frames = std::vector<std::string>;

TEST_CASE("A text message goes on as one frame, once it was judged") {
  Bench bench;
  const std::string fragments = Frame(WebSocketOpcode::kText, "he", false) +
                                Frame(WebSocketOpcode::kPing, "p") +
                                Frame(WebSocketOpcode::kContinuation, "l", false) +
                                Frame(WebSocketOpcode::kContinuation, "lo") + Text("old");
  for (size_t step : {size_t{1}, size_t{3}, SIZE_MAX}) {
    bench.judge.judged.clear();
    Sent sent = bench.Feed(fragments, step);
    CHECK_FALSE(sent.end.has_value());
    CHECK(sent.frames == Frames{"9:p", "1:hello", "1:[new]"});
    CHECK(bench.judge.judged == Frames{"hello", "old"});
  }
}

TEST_CASE("Nothing of a refused message goes on, nor of what follows it") {
  Bench bench;
  Sent sent = bench.Feed(Text("yes") + Text("no") + Text("later"));
  CHECK(sent.frames == Frames{"1:yes"});
  REQUIRE(sent.end.has_value());
  CHECK(sent.end->close == WebSocketClose::kPolicy);
  CHECK_FALSE(sent.end->is_fault);
  CHECK(bench.judge.judged == Frames{"yes", "no"});
}

TEST_CASE("A message that is not whole is not judged and does not go on") {
  Bench bench;
  CHECK(bench.Feed(Frame(WebSocketOpcode::kText, "yes", false)).frames.empty());
  CHECK(bench.Feed(Text("yes").substr(0, 5)).frames.empty());
  CHECK(bench.judge.judged.empty());
}

TEST_CASE("Binary messages pass as they come, unless they are refused") {
  Bench bench;
  const std::string binary = Frame(WebSocketOpcode::kBinary, std::string("\0\xff", 2), false) +
                             Frame(WebSocketOpcode::kContinuation, "end");
  CHECK(bench.Feed(binary, 3).frames == Frames{std::string("2+:\0\xff", 5), "0:end"});
  CHECK(bench.judge.judged.empty());
  bench.judge.binary_refused = true;
  Sent refused = bench.Feed(Text("a") + binary);
  CHECK(refused.frames == Frames{"1:a"});
  CHECK(refused.end->close == WebSocketClose::kPolicy);
}

TEST_CASE("A compressed message is judged and sent on in clear") {
  Bench bench;
  bench.deflate = true;
  const std::string hello("\xf2\x48\xcd\xc9\xc9\x07\x00", 7);
  CHECK(bench.Feed(Frame(WebSocketOpcode::kText, hello, true, true)).frames == Frames{"1:Hello"});
  bench.deflate = false;
  CHECK(bench.Feed(Frame(WebSocketOpcode::kText, hello, true, true)).end->is_fault);
}

TEST_CASE("What breaks the protocol ends the connection with its code") {
  Bench bench;
  const auto close = [&](const std::string& in) { return bench.Feed(in).end->close; };
  CHECK(close(codec::RenderWebSocketFrame({WebSocketOpcode::kText}, "a", std::nullopt)) ==
        WebSocketClose::kProtocolError);
  CHECK(close(Text("\xff")) == WebSocketClose::kNotUtf8);
  CHECK(close(Frame(WebSocketOpcode::kClose, "\x03")) == WebSocketClose::kProtocolError);
  CHECK(close(std::string("\x82\xff\0\0\0\0\x01\0\0\x01mask", 14)) == WebSocketClose::kTooBig);
  CHECK(close(std::string("\x81\xff\0\0\0\0\0\x40\0\x01mask", 14)) == WebSocketClose::kTooBig);
  CHECK(bench.judge.judged.empty());
  Sent closed = bench.Feed(Frame(WebSocketOpcode::kClose, "\x03\xe8"));
  CHECK(closed.frames == Frames{"8:\x03\xe8"});
}

TEST_CASE("A message that grows large waits for room, and loses nothing") {
  Bench bench;
  bench.large.count = kWebSocketLargeMax;
  const std::string small(kWebSocketSmallBytesMax, 'x');
  CHECK(bench.Feed(Text(small)).frames.size() == 1);
  WebSocketInspector inspector(false, bench.judge, bench.large);
  std::string out;
  const std::string frame = Frame(WebSocketOpcode::kText, small + "x", false);
  const std::string rest = Frame(WebSocketOpcode::kContinuation, "y") + Text("next");
  CHECK_FALSE(inspector.Feed(frame + rest, out).has_value());
  CHECK(inspector.lacks_room());
  CHECK_FALSE(inspector.Feed("", out).has_value());
  CHECK(inspector.lacks_room());
  CHECK(bench.judge.judged.size() == 1);
  CHECK(out.empty());
  bench.large.count = kWebSocketLargeMax - 1;
  CHECK_FALSE(inspector.Feed("", out).has_value());
  CHECK_FALSE(inspector.lacks_room());
  CHECK(bench.judge.judged == std::vector<std::string>{small, small + "xy", "next"});
  CHECK(bench.large.count == kWebSocketLargeMax - 1);
}

TEST_CASE("A large message that is given up makes room again") {
  Bench bench;
  const std::string large(kWebSocketSmallBytesMax + 1, 'x');
  {
    WebSocketInspector inspector(false, bench.judge, bench.large);
    std::string out;
    inspector.Feed(Frame(WebSocketOpcode::kText, large, false), out);
    CHECK(bench.large.count == 1);
  }
  CHECK(bench.large.count == 0);
}

TEST_CASE("A message under way is known, for its time to be bounded") {
  TestJudge judge;
  LargeMessages large;
  WebSocketInspector inspector(false, judge, large);
  std::string out;
  CHECK_FALSE(inspector.assembling_since().has_value());
  inspector.Feed(Frame(WebSocketOpcode::kText, "a", false), out);
  CHECK(inspector.assembling_since().has_value());
  inspector.Feed(Frame(WebSocketOpcode::kContinuation, "b"), out);
  CHECK_FALSE(inspector.assembling_since().has_value());
}

}  // namespace
}  // namespace gateway
