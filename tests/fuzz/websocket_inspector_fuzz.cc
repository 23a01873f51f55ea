// SPDX-License-Identifier: Apache-2.0
// A client's side of a WebSocket: nothing goes on that was not judged, however the bytes arrive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/inspect/limits.h"
#include "gateway/inspect/websocket_inspector.h"

namespace {

using codec::WebSocketDecoder;
using codec::WebSocketOpcode;

// Refuses what begins with 'n', and doubles what begins with 'd'.
class Judge final : public gateway::MessageJudge {
 public:
  std::optional<gateway::WebSocketEnd> JudgeText(std::string& text) override {
    if (text.starts_with('n')) return gateway::WebSocketEnd{codec::WebSocketClose::kPolicy, "no"};
    if (text.starts_with('d')) text += std::string(text);
    passed.push_back(text);
    return std::nullopt;
  }
  std::optional<gateway::WebSocketEnd> JudgeBinary() override { return std::nullopt; }

  std::vector<std::string> passed;
};

struct Outcome {
  std::vector<std::string> passed;
  std::vector<std::string> sent;  // Each frame as its opcode, its end and its payload.
  std::optional<codec::WebSocketClose> close;

  bool operator==(const Outcome&) const = default;
};

// What goes to the server can be read as what was passed, and as nothing else.
void ReadSent(std::string_view out, bool deflate, Outcome* outcome) {
  WebSocketDecoder decoder(WebSocketDecoder::Sender::kClient, deflate,
                           2 * gateway::kWebSocketFrameBytesMax);
  std::string payload;
  std::vector<std::string> texts;
  for (;;) {
    const WebSocketDecoder::Step step = decoder.Next(out, &payload);
    ENSURE(!step.fault.has_value());
    if (step.consumed == 0) break;
    out.remove_prefix(step.consumed);
    if (!step.ends) continue;
    const codec::WebSocketFrame& frame = decoder.frame();
    if (frame.opcode == WebSocketOpcode::kText) {
      ENSURE(frame.is_final && !frame.is_compressed);
      texts.push_back(payload);
    }
    outcome->sent.push_back(
        std::string{static_cast<char>(frame.opcode), frame.is_final ? '.' : '+'} +
        std::exchange(payload, {}));
  }
  ENSURE(texts == outcome->passed);
}

Outcome Feed(std::string_view in, bool deflate, size_t step) {
  Judge judge;
  gateway::LargeMessages large;
  Outcome outcome;
  std::string out;
  {
    gateway::WebSocketInspector inspector(deflate, judge, large);
    while (!in.empty() && !outcome.close.has_value()) {
      std::optional<gateway::WebSocketEnd> end = inspector.Feed(in.substr(0, step), out);
      if (end.has_value()) outcome.close = end->close;
      in.remove_prefix(std::min(step, in.size()));
    }
  }
  ENSURE(large.count == 0);
  outcome.passed = judge.passed;
  ReadSent(out, deflate, &outcome);
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool deflate = (data[0] & 1) != 0;
  const size_t step = size_t{data[1]} + 1;
  const std::string_view in(reinterpret_cast<const char*>(data) + 2, size - 2);
  ENSURE(Feed(in, deflate, SIZE_MAX / 2) == Feed(in, deflate, step));
  return 0;
}
