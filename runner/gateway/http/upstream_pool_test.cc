// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/upstream_pool.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "gateway/async/test_line.h"
#include "gateway/http/http1_server.h"

namespace gateway {
namespace {

const policy::Address kHere = policy::ParseAddress("127.0.0.1").value();
const policy::Address kThere = policy::ParseAddress("192.0.2.1").value();
constexpr milliseconds kSweep{2};

// A pool with connections whose servers are the test's.
class Bench {
 public:
  // The servers go, and the pool sees that.
  ~Bench() {
    servers_.clear();
    RunUntilDone(loop_, Pause(loop_, 5 * kSweep));
  }
  EventLoop& loop() { return loop_; }
  UpstreamPool& pool() { return pool_; }
  // A new connection and its server.
  std::pair<std::unique_ptr<UpstreamConnection>, Fd*> Connect(const std::string& key) {
    auto [ours, theirs] = sys::SocketPair().value();
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    auto connection = std::make_unique<UpstreamConnection>();
    connection->stream = std::make_unique<Stream>(loop_, std::move(ours));
    connection->key = key;
    connection->address = kHere;
    servers_.push_back(std::make_unique<Fd>(std::move(theirs)));
    return {std::move(connection), servers_.back().get()};
  }
  Fd* Keep(const std::string& key) {
    auto [connection, server] = Connect(key);
    pool_.Keep(std::move(connection));
    return server;
  }

 private:
  EventLoop loop_ = EventLoop::Open().value();
  UpstreamPool pool_{loop_, kSweep};
  std::vector<std::unique_ptr<Fd>> servers_;
};

TEST_CASE("A kept connection is for its own host, port, TLS and address alone") {
  Bench bench;
  bench.Keep(UpstreamKey(true, "a.example", 443));
  for (const std::string& key :
       {UpstreamKey(false, "a.example", 443), UpstreamKey(true, "b.example", 443),
        UpstreamKey(true, "a.example", 8443)}) {
    CHECK(bench.pool().Take(key, {kHere}) == nullptr);
  }
  const std::string key = UpstreamKey(true, "a.example", 443);
  CHECK(bench.pool().Take(key, {kThere}) == nullptr);
  CHECK_FALSE(bench.pool().Has(key, {kThere}));
  CHECK(bench.pool().Has(key, {kThere, kHere}));
  std::unique_ptr<UpstreamConnection> taken = bench.pool().Take(key, {kThere, kHere});
  REQUIRE(taken);
  CHECK(taken->used);
  CHECK(bench.pool().Take(key, {kHere}) == nullptr);  // It is not in use meanwhile.
}

TEST_CASE("A connection that its server has closed or spoken on is not given out") {
  Bench bench;
  Fd* first = bench.Keep("k");
  Fd* last = bench.Keep("k");
  SECTION("closed") { last->Close(); }
  SECTION("spoken on") { REQUIRE(sys::WriteAll(last->get(), "HTTP/1.1 408 \r\n").ok()); }
  std::unique_ptr<UpstreamConnection> taken = bench.pool().Take("k", {kHere});
  REQUIRE(taken);
  REQUIRE(sys::WriteAll(first->get(), "x").ok());
  CHECK(RunUntilDone(bench.loop(), taken->stream->Fill(Late())).value() == 1);
  CHECK(bench.pool().Take("k", {kHere}) == nullptr);
}

TEST_CASE(
    "What nobody takes is closed when its server closes, and the oldest when there are many") {
  Bench bench;
  Fd* closed = bench.Keep("closed");
  REQUIRE(::shutdown(closed->get(), SHUT_WR) == 0);
  RunUntilDone(bench.loop(), Pause(bench.loop(), 5 * kSweep));
  char byte = 0;
  CHECK(::recv(closed->get(), &byte, 1, MSG_DONTWAIT) == 0);
  Fd* oldest = bench.Keep("many");
  Fd* second = bench.Keep("many");
  CHECK(::recv(oldest->get(), &byte, 1, MSG_DONTWAIT) < 0);
  for (size_t more = 0; more < kIdleUpstreamsMax - 1; ++more) bench.Keep("many");
  CHECK(::recv(oldest->get(), &byte, 1, MSG_DONTWAIT) == 0);
  CHECK(::recv(second->get(), &byte, 1, MSG_DONTWAIT) < 0);
}

// Sends a request without a body and reads `pieces` of its answer.
Task<Status> Exchange(Http1ServerRequest& request, std::string method, int pieces) {
  const codec::HttpFields fields = {{"Host", "a"}};
  Status sent = co_await request.SendHead(method, "/", fields, codec::BodyFraming());
  if (sent.ok()) sent = co_await request.body().Finish({});
  if (!sent.ok()) co_return sent;
  Result<codec::ResponseHead> head = co_await request.ReadHead(Late());
  if (!head.ok()) co_return std::move(head).error();
  for (int piece = 0; piece < pieces; ++piece) {
    Result<BodyReader::Piece> read = co_await request.answer().Read(Late());
    if (!read.ok()) co_return std::move(read).error();
  }
  co_return Ok();
}

struct Outcome {
  Status status = Ok();
  bool kept = false;
};

// Returns what becomes of a connection on which the server gives this answer.
Outcome Answer(Bench& bench, const std::string& answer, const std::string& method = "GET") {
  auto [connection, server] = bench.Connect("k");
  REQUIRE(sys::WriteAll(server->get(), answer).ok());
  Outcome outcome;
  {
    Http1ServerRequest request(bench.pool(), std::move(connection));
    outcome.status = RunUntilDone(bench.loop(), Exchange(request, method, 1));
  }
  outcome.kept = bench.pool().Take("k", {kHere}) != nullptr;
  return outcome;
}

TEST_CASE("Only a connection whose answer was read to its end is kept") {
  Bench bench;
  struct Case {
    const char* answer;
    const char* method;
    bool kept;
  };
  for (const Case& each : {
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "GET", true},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "GET", false},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", "GET", false},
           Case{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "GET",
                false},
           Case{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "GET", false},
           Case{"HTTP/1.1 200 OK\r\n\r\nok", "GET", false},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "HEAD", true},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HEAD", false},
           Case{"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "GET", true},
           Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET", true},
       }) {
    INFO(each.method << " " << each.answer);
    Outcome outcome = Answer(bench, each.answer, each.method);
    CHECK(outcome.status.ok());
    CHECK(outcome.kept == each.kept);
  }
}

TEST_CASE("A request may be repeated only where a kept connection gave nothing of an answer") {
  Bench bench;
  auto [connection, server] = bench.Connect("k");
  SECTION("kept") { connection->used = true; }
  SECTION("new") { connection->used = false; }
  SECTION("kept, and answered in part") {
    connection->used = true;
    REQUIRE(sys::WriteAll(server->get(), "HTTP/1.1 200").ok());
  }
  const bool may = connection->used && !connection->stream->IsStale();
  REQUIRE(::shutdown(server->get(), SHUT_WR) == 0);
  Http1ServerRequest request(bench.pool(), std::move(connection));
  CHECK(CodeOf(RunUntilDone(bench.loop(), Exchange(request, "GET", 0))) == Code::kIo);
  CHECK(request.may_repeat() == may);
}

}  // namespace
}  // namespace gateway
