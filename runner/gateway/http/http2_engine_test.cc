// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "base/code_of.h"
#include "gateway/async/limits.h"
#include "gateway/http/limits.h"

namespace gateway {
namespace {

using codec::HttpFields;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Writes down what happens, and sends what it is given.
class Notes final : public Http2Engine::Listener {
 public:
  void OnHead(int32_t stream, HttpFields fields, bool end) override {
    heads.push_back({stream, std::move(fields)});
    ended[stream] = ended[stream] || end;
  }
  bool OnData(int32_t stream, std::string_view bytes) override {
    if (drops) return false;
    body[stream].append(bytes);
    return true;
  }
  void OnEnd(int32_t stream, HttpFields fields) override {
    ended[stream] = true;
    trailers[stream] = std::move(fields);
  }
  void OnClose(int32_t stream, Http2Code code) override { closed[stream] = code; }
  void OnMalformed(int32_t, std::string_view why) override { malformed.emplace_back(why); }
  Http2Engine::Taken OnTake(int32_t stream, char* out, size_t size) override {
    Http2Engine::Taken taken;
    std::string& left = sending[stream];
    taken.size = std::min(size, left.size());
    std::copy_n(left.data(), taken.size, out);
    left.erase(0, taken.size);
    taken.end = left.empty() && finishing[stream];
    if (taken.end) taken.trailers = last[stream];
    return taken;
  }

  bool drops = false;
  std::vector<std::pair<int32_t, HttpFields>> heads;
  std::map<int32_t, std::string> body, sending;
  std::map<int32_t, bool> ended, finishing;
  std::map<int32_t, HttpFields> trailers, last;
  std::map<int32_t, Http2Code> closed;
  std::vector<std::string> malformed;
};

std::string Drain(Http2Engine& engine) {
  std::string out;
  for (;;) {
    Result<std::string_view> next = engine.Next();
    if (!next.ok() || next.value().empty()) return out;
    out.append(next.value());
  }
}

// Two ends of one connection.
struct Pair {
  Notes at_client, at_server;
  Http2Engine client{Http2Engine::Role::kClient, at_client};
  Http2Engine server{Http2Engine::Role::kServer, at_server};

  void Exchange() {
    for (int round = 0; round < 200; ++round) {
      std::string there = Drain(client);
      std::string back = Drain(server);
      if (there.empty() && back.empty()) return;
      if (!there.empty()) (void)server.Feed(there).ok();
      if (!back.empty()) (void)client.Feed(back).ok();
    }
  }
};

HttpFields Get(std::string path = "/") {
  return {{":method", "GET"}, {":scheme", "https"}, {":authority", "h"}, {":path", path}};
}

HttpFields Post(HttpFields more = {}) {
  HttpFields fields = Get();
  fields[0].value = "POST";
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (size_t shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (size_t shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift & 0xff);
  return frame.append(payload);
}

// Literal fields without indexing and without Huffman coding (RFC 7541, 6.2.2).
std::string Block(const HttpFields& fields) {
  std::string block;
  auto text = [&](const std::string& value) {
    ENSURE(value.size() < 127);
    block += static_cast<char>(value.size());
    block += value;
  };
  for (const codec::HttpField& field : fields) {
    block += '\0';
    text(field.name);
    text(field.value);
  }
  return block;
}

std::string Headers(uint32_t stream, const HttpFields& fields, bool end = true) {
  return Frame(1, end ? 5 : 4, stream, Block(fields));
}

std::string Opening() { return std::string(kPreface) + Frame(4, 0, 0, ""); }

// One server that is fed raw bytes.
struct Server {
  Notes notes;
  Http2Engine engine{Http2Engine::Role::kServer, notes};
  bool ok = true;

  explicit Server(const std::string& bytes) { Feed(Opening() + bytes); }
  void Feed(const std::string& bytes) {
    ok = engine.Feed(bytes).ok();
    (void)Drain(engine);
  }
  bool over() const { return !ok || !engine.wants_more(); }
};

TEST_CASE("A request, its body, its answer and the trailers of both arrive") {
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Post({{"x", "y"}}), false).value();
  pair.at_client.sending[stream] = "question";
  pair.at_client.finishing[stream] = true;
  pair.Exchange();
  REQUIRE(pair.at_server.heads.size() == 1);
  CHECK(codec::FindField(pair.at_server.heads[0].second, "x")->value == "y");
  CHECK(pair.at_server.body[stream] == "question");
  CHECK(pair.at_server.ended[stream]);
  REQUIRE(pair.server.SubmitInterim(stream, {{":status", "103"}}).ok());
  REQUIRE(pair.server.SubmitResponse(stream, {{":status", "200"}}, false).ok());
  pair.at_server.sending[stream] = "answer";
  pair.at_server.finishing[stream] = true;
  pair.at_server.last[stream] = {{"grpc-status", "0"}};
  pair.server.Resume(stream);
  pair.Exchange();
  REQUIRE(pair.at_client.heads.size() == 2);
  CHECK(pair.at_client.heads[0].second[0].value == "103");
  CHECK(pair.at_client.heads[1].second[0].value == "200");
  CHECK(pair.at_client.body[stream] == "answer");
  CHECK(codec::FindField(pair.at_client.trailers[stream], "grpc-status")->value == "0");
  CHECK(pair.at_client.closed[stream] == Http2Code::kNoError);
  CHECK(pair.at_server.malformed.empty());
}

TEST_CASE("What is not consumed is not sent beyond the window") {
  Pair pair;
  pair.Exchange();
  int32_t stream = pair.client.SubmitRequest(Post(), false).value();
  pair.at_client.sending[stream] = std::string(4 * kHttp2UploadWindow, 'x');
  pair.Exchange();
  CHECK(pair.at_server.body[stream].size() == kHttp2UploadWindow);
  pair.server.Consume(stream, kHttp2UploadWindow);
  pair.Exchange();
  CHECK(pair.at_server.body[stream].size() == 2 * kHttp2UploadWindow);
}

TEST_CASE("All streams together are bounded by the connection's window") {
  Pair pair;
  pair.Exchange();
  size_t total = 0;
  for (int i = 0; i < 8; ++i) {
    int32_t stream = pair.client.SubmitRequest(Post(), false).value();
    pair.at_client.sending[stream] = std::string(kHttp2UploadWindow, 'x');
    pair.Exchange();
  }
  for (const auto& [stream, bytes] : pair.at_server.body) total += bytes.size();
  CHECK(total == kHttp2ClientWindow);
}

TEST_CASE("Bytes that nobody wants do not use up the window") {
  Pair pair;
  pair.Exchange();
  pair.at_server.drops = true;
  int32_t stream = pair.client.SubmitRequest(Post(), false).value();
  pair.at_client.sending[stream] = std::string(4 * kHttp2UploadWindow, 'x');
  pair.at_client.finishing[stream] = true;
  pair.Exchange();
  CHECK(pair.at_server.ended[stream]);
}

TEST_CASE("An answer before the end of its request stops the request") {
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Post(), false).value();
  pair.at_client.sending[stream] = std::string(4 * kHttp2UploadWindow, 'x');
  pair.Exchange();
  REQUIRE(pair.server.SubmitResponse(stream, {{":status", "413"}}, true).ok());
  pair.Exchange();
  CHECK(pair.at_client.heads[0].second[0].value == "413");
  CHECK(pair.at_client.closed[stream] == Http2Code::kNoError);
}

TEST_CASE("A reset reaches the other side with its code") {
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Get(), true).value();
  pair.Exchange();
  pair.server.Reset(stream, Http2Code::kRefusedStream);
  pair.Exchange();
  CHECK(pair.at_client.closed[stream] == Http2Code::kRefusedStream);
}

HttpFields Answer(size_t fields, size_t bytes) {
  HttpFields head = {{":status", "200"}};
  head.resize(1 + fields, {"x", std::string(bytes, 'v')});
  return head;
}

TEST_CASE("Every head that a server of HTTP/1 may send can be sent") {
  constexpr size_t kShortest = 4;  // "x:" and the line's end.
  for (size_t bytes : {size_t{0}, size_t{30}, size_t{2000}}) {
    CAPTURE(bytes);
    Pair pair;
    int32_t stream = pair.client.SubmitRequest(Get(), true).value();
    pair.Exchange();
    size_t fields = kResponseHeadBytesMax / (bytes + kShortest);
    REQUIRE(pair.server.SubmitResponse(stream, Answer(fields, bytes), true).ok());
    CHECK(Drain(pair.server).size() > fields);
    CHECK(pair.at_server.closed[stream] == Http2Code::kNoError);
  }
}

TEST_CASE("A head that cannot be sent resets its stream") {
  const HttpFields endless = Answer(200, kHttp2SentHeadBytesMax / 100);
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Get(), true).value();
  int32_t other = pair.client.SubmitRequest(Get(), true).value();
  pair.Exchange();
  SECTION("An answer") { REQUIRE(pair.server.SubmitResponse(stream, endless, true).ok()); }
  SECTION("An interim one") { REQUIRE(pair.server.SubmitInterim(stream, endless).ok()); }
  SECTION("Trailers") {
    pair.at_server.finishing[stream] = true;
    pair.at_server.last[stream] = endless;
    REQUIRE(pair.server.SubmitResponse(stream, {{":status", "200"}}, false).ok());
  }
  REQUIRE(pair.server.SubmitResponse(other, Answer(1, 1), true).ok());
  pair.Exchange();
  CHECK(pair.at_client.closed.at(stream) == Http2Code::kInternalError);
  CHECK(pair.at_server.closed.at(stream) == Http2Code::kInternalError);
  CHECK(pair.at_client.closed.at(other) == Http2Code::kNoError);
}

TEST_CASE("Behind a farewell nothing is opened any more") {
  Pair pair;
  pair.Exchange();
  CHECK(pair.client.may_open());
  pair.server.Finish(Http2Code::kNoError);
  pair.Exchange();
  CHECK_FALSE(pair.client.may_open());
}

TEST_CASE("A sound request in raw frames is taken") {
  Server server(Headers(1, Get()));
  CHECK(server.notes.heads.size() == 1);
  CHECK(server.notes.malformed.empty());
  CHECK_FALSE(server.over());
}

TEST_CASE("A malformed message is told once and costs its stream alone") {
  auto with = [](std::string name, std::string value) {
    HttpFields fields = Get();
    fields.push_back({std::move(name), std::move(value)});
    return Headers(1, fields);
  };
  std::string short_body = Headers(1, Post({{"content-length", "5"}}), false);
  std::vector<std::string> malformed = {
      with("X-Upper", "v"),
      with("connection", "keep-alive"),
      with("transfer-encoding", "chunked"),
      with("te", "gzip"),
      with("x", "a\r\nb: c"),
      with("x", std::string("a\0b", 3)),
      with(":path", "/again"),
      with("host", std::string("a b")),
      with("content-length", "5"),
      Headers(1, {{":method", "GET"}, {":scheme", "https"}, {":authority", "h"}}),
      short_body + Frame(0, 1, 1, "1234"),
      short_body + Frame(0, 1, 1, "123456"),
      short_body + Headers(1, {{":path", "/"}}),
      short_body + Frame(0, 0, 1, "12345") + Headers(1, {{"host", "evil"}}),
  };
  for (const std::string& bytes : malformed) {
    CAPTURE(bytes);
    Server server(bytes);
    CHECK(server.notes.malformed.size() == 1);
    CHECK_FALSE(server.over());
    size_t before = server.notes.heads.size();
    server.Feed(Headers(3, Get()));
    CHECK(server.notes.heads.size() == before + 1);
  }
}

TEST_CASE("A head is bounded by what it unfolds to") {
  HttpFields fields = Get();
  std::string big(100, 'v');
  while (fields.size() < kRequestHeadBytesMax / 132 + 2) fields.push_back({"x", big});
  Server server(Headers(1, fields));
  REQUIRE(server.notes.malformed.size() == 1);
  CHECK(server.notes.malformed[0] == "head longer than 16384 bytes");
  CHECK(server.notes.heads.empty());
  CHECK_FALSE(server.over());
}

TEST_CASE("A head that never ends ends the connection") {
  std::string bytes = Frame(1, 1, 1, Block(Get()));
  for (int i = 0; i < 100; ++i) bytes += Frame(9, 0, 1, Block({{"x", "y"}}));
  Server server(bytes);
  CHECK(server.over());
  CHECK(server.notes.heads.empty());
}

TEST_CASE("A head that is not complete is known since when") {
  Server server(Frame(1, 1, 1, Block(Get())));
  CHECK(server.engine.head_since().has_value());
  server.Feed(Frame(9, 4, 1, ""));
  CHECK_FALSE(server.engine.head_since().has_value());
  CHECK(server.notes.heads.size() == 1);
}

// So many frames, in portions as a socket gives them.
bool Survives(const std::string& frame, int count, const std::string& before = "") {
  Server server(before);
  for (int i = 0; i < count && !server.over(); ++i) server.Feed(frame);
  return !server.over();
}

TEST_CASE("Floods of frames that bring nothing end the connection") {
  std::string open = Headers(1, Post(), false);
  std::string ping = Frame(6, 0, 0, "12345678");
  std::string settings = Frame(4, 0, 0, "");
  std::string empty_data = Frame(0, 0, 1, "");
  std::string priority = Frame(2, 0, 1, std::string("\0\0\0\3\7", 5));
  std::string window = Frame(8, 0, 0, std::string("\0\0\0\1", 4));
  for (const std::string& frame : {ping, settings, empty_data, priority, window}) {
    CAPTURE(frame);
    CHECK(Survives(frame, 500, open));
    CHECK_FALSE(Survives(frame, 2000, open));
  }
}

TEST_CASE("Requests that are reset at once end the connection") {
  auto survives = [](uint32_t count) {
    Server server("");
    for (uint32_t i = 0; i < count && !server.over(); ++i) {
      uint32_t stream = 2 * i + 1;
      server.Feed(Headers(stream, Get()) + Frame(3, 0, stream, std::string("\0\0\0\x8", 4)));
    }
    return !server.over();
  };
  CHECK(survives(100));
  CHECK_FALSE(survives(1000));
}

TEST_CASE("A peer that is sent bodies may acknowledge each piece") {
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Get(), true).value();
  pair.Exchange();
  REQUIRE(pair.server.SubmitResponse(stream, {{":status", "200"}}, false).ok());
  for (int i = 0; i < 5000; ++i) {
    pair.at_server.sending[stream] = "piece";
    pair.server.Resume(stream);
    (void)Drain(pair.server);
    std::string acknowledgement = std::string("\0\0\0\5", 4);
    REQUIRE(pair.server.Feed(Frame(8, 0, 0, acknowledgement)).ok());
    REQUIRE(pair.server.wants_more());
  }
}

TEST_CASE("What is no HTTP/2 at all fails") {
  Notes notes;
  Http2Engine engine(Http2Engine::Role::kServer, notes);
  CHECK(CodeOf(engine.Feed("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == Code::kIo);
  CHECK_FALSE(engine.failure().empty());
}

TEST_CASE("A server may not push") {
  Pair pair;
  int32_t stream = pair.client.SubmitRequest(Get(), true).value();
  pair.Exchange();
  std::string promise = std::string("\0\0\0\2", 4) + Block(Get("/pushed"));
  (void)pair.client.Feed(Frame(5, 4, static_cast<uint32_t>(stream), promise)).ok();
  (void)Drain(pair.client);
  CHECK_FALSE(pair.client.wants_more());
}

}  // namespace
}  // namespace gateway
