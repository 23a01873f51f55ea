// SPDX-License-Identifier: Apache-2.0
// HTTP/2: whatever a peer sends, what is understood of it can be sent on as HTTP/1 and means the
// same there. The first byte chooses the side, the second how the bytes are split.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "gateway/http/http2_engine.h"
#include "gateway/http/http2_head.h"

namespace {

using gateway::Http2Engine;

void CheckRequest(const codec::HttpFields& fields, bool end) {
  Result<gateway::Http2Request> request = gateway::ParseHttp2Request(fields, end, "https");
  if (!request.ok()) return;
  const codec::RequestHead& head = request.value().head;
  const std::string rendered = codec::RenderRequestHead(head.method, head.target, head.fields);
  ENSURE(codec::ScanHead(rendered).size == rendered.size());
  Result<codec::RequestHead> again = codec::ParseRequestHead(rendered);
  ENSURE(again.ok());
  ENSURE(again.value().method == head.method && again.value().target == head.target);
  ENSURE(again.value().fields.size() == head.fields.size());
  for (size_t i = 0; i < head.fields.size(); ++i) {
    ENSURE(again.value().fields[i].name == head.fields[i].name);
    ENSURE(again.value().fields[i].value == head.fields[i].value);
  }
}

// Answers every request, takes every body, and counts what it is told.
class Peer final : public Http2Engine::Listener {
 public:
  explicit Peer(Http2Engine::Role role)
      : is_server_(role == Http2Engine::Role::kServer), engine_(role, *this) {}

  Http2Engine& engine() { return engine_; }

  void OnHead(int32_t stream, codec::HttpFields fields, bool end) override {
    if (is_server_) {
      ENSURE(open_.emplace(stream, size_t{100}).second);
      CheckRequest(fields, end);
      Answer(stream);
      return;
    }
    ENSURE(open_.contains(stream));
    (void)gateway::ParseHttp2Response(fields);
  }
  bool OnData(int32_t stream, std::string_view bytes) override {
    ENSURE(open_.contains(stream));
    if (bytes.size() % 3 == 0) return false;
    engine_.Consume(stream, bytes.size());
    return true;
  }
  void OnEnd(int32_t stream, codec::HttpFields trailers) override {
    ENSURE(open_.contains(stream));
    (void)gateway::CheckHttp2Trailers(trailers);
  }
  void OnClose(int32_t stream, gateway::Http2Code) override { open_.erase(stream); }
  void OnMalformed(int32_t, std::string_view why) override { ENSURE(!why.empty()); }
  Http2Engine::Taken OnTake(int32_t stream, char* out, size_t size) override {
    auto left = open_.find(stream);
    if (left == open_.end()) return {0, true, {}};
    const size_t taken = std::min(size, left->second);
    std::fill_n(out, taken, 'b');
    left->second -= taken;
    return {taken, left->second == 0, {}};
  }

  void Ask() {
    const codec::HttpFields fields = {
        {":method", "GET"}, {":scheme", "https"}, {":authority", "a.example"}, {":path", "/"}};
    Result<int32_t> stream = engine_.SubmitRequest(fields, true);
    if (stream.ok()) open_.emplace(stream.value(), size_t{0});
  }

 private:
  void Answer(int32_t stream) {
    const codec::BodyFraming framing{codec::BodyFraming::kChunked, 0};
    (void)engine_.SubmitResponse(stream, gateway::RenderHttp2Response(200, {}, framing), false);
  }

  bool is_server_;
  Http2Engine engine_;
  std::map<int32_t, size_t> open_;  // What is left of each stream's answer.
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool is_client = (data[0] & 1) != 0;
  Peer peer(is_client ? Http2Engine::Role::kClient : Http2Engine::Role::kServer);
  if (is_client) peer.Ask();
  const size_t step = data[1] == 0 ? size : data[1];
  std::string_view in(reinterpret_cast<const char*>(data) + 2, size - 2);
  size_t sent = 0;
  while (true) {
    Result<std::string_view> out = peer.engine().Next();
    if (!out.ok()) return 0;
    sent += out.value().size();
    ENSURE(sent < (size_t{64} << 20));
    if (!out.value().empty()) continue;
    if (in.empty() || !peer.engine().wants_more()) return 0;
    const std::string_view piece = in.substr(0, step);
    in.remove_prefix(piece.size());
    if (!peer.engine().Feed(piece).ok()) return 0;
  }
}
