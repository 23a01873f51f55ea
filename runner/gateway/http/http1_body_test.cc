// SPDX-License-Identifier: Apache-2.0
// The moving parts on socket pairs: loop, streams, heads and bodies.
#include "gateway/http/http1_body.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>

#include "base/sys.h"
#include "gateway/async/limits.h"
#include "gateway/http/head_reader.h"
#include "gateway/http/limits.h"
#include "gateway/http/relay.h"

namespace gateway {
namespace {

// A stream and the test's end of it. Each send of the test arrives as one read.
class Line {
 public:
  explicit Line(EventLoop& loop) {
    auto [ours, theirs] = sys::SocketPair().value();
    ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
    far_ = std::move(ours);
    stream_ = std::make_unique<Stream>(loop, std::move(theirs));
  }
  Stream& stream() { return *stream_; }
  void Send(std::string_view bytes) { REQUIRE(sys::WriteAll(far_.get(), bytes).ok()); }
  void Finish() { REQUIRE(::shutdown(far_.get(), SHUT_WR) == 0); }
  // All that has arrived at the test's end.
  std::string Arrived() {
    std::string all(65536, '\0');
    size_t size = 0;
    for (;;) {
      ssize_t n = ::recv(far_.get(), all.data() + size, all.size() - size, MSG_DONTWAIT);
      if (n <= 0) break;
      size += static_cast<size_t>(n);
    }
    all.resize(size);
    return all;
  }

 private:
  Fd far_;
  std::unique_ptr<Stream> stream_;
};

template <typename T>
Task<Done> Store(EventLoop& loop, Task<T> task, std::optional<T>& result) {
  result = co_await task;
  loop.Stop();
  co_return Done{};
}

// Runs the loop until `task` is done.
template <typename T>
T RunUntilDone(EventLoop& loop, Task<T> task) {
  std::optional<T> result;
  loop.Spawn(Store(loop, std::move(task), result));
  if (!result.has_value()) loop.Run();
  return std::move(*result);
}

// How a body that moved from one stream to another ended.
struct Moved {
  Status status = Ok();
  codec::HttpFields trailers;
};

Task<Moved> Move(Stream& from, Stream& to, codec::BodyFraming in, codec::BodyFraming out) {
  Http1BodyReader reader(from, in);
  Http1BodyWriter writer(to);
  writer.Begin("", out);
  for (;;) {
    Result<BodyReader::Piece> piece = co_await reader.Read(Deadline::After(kBodyIdleTimeout));
    if (!piece.ok()) co_return Moved{std::move(piece).error(), {}};
    Status written = co_await writer.Write(piece.value().bytes);
    if (written.ok() && piece.value().end) written = co_await writer.Finish(reader.trailers());
    if (!written.ok() || piece.value().end) {
      reader.Release();
      co_return Moved{std::move(written), reader.trailers()};
    }
  }
}

using codec::BodyFraming;

Moved Pump(EventLoop& loop, Line& from, Line& to, BodyFraming in, BodyFraming out) {
  return RunUntilDone(loop, Move(from.stream(), to.stream(), in, out));
}

constexpr BodyFraming kChunked{BodyFraming::kChunked, 0};
constexpr BodyFraming kUntilClose{BodyFraming::kUntilClose, 0};

TEST_CASE("A body of a known length stops there and leaves the rest") {
  EventLoop loop = EventLoop::Open().value();
  Line from(loop), to(loop);
  from.Send("hel");
  from.Send("loNEXT");
  BodyFraming five{BodyFraming::kLength, 5};
  CHECK(Pump(loop, from, to, five, five).status.ok());
  CHECK(to.Arrived() == "hello");
  CHECK(from.stream().buffered() == "NEXT");
}

TEST_CASE("A chunked body is framed anew with its trailers, or bare for a client without chunks") {
  EventLoop loop = EventLoop::Open().value();
  for (bool rechunk : {true, false}) {
    Line from(loop), to(loop);
    from.Send("3;x\r\nabc\r\n0");
    from.Send("02\r\nde\r\n0\r\nT: 1\r\nContent-Length: 9\r\n\r\nNEXT");
    Moved moved = Pump(loop, from, to, kChunked, rechunk ? kChunked : kUntilClose);
    CHECK(moved.status.ok());
    CHECK(moved.trailers.size() == 1);
    CHECK(to.Arrived() == (rechunk ? "3\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n" : "abcde"));
    CHECK(from.stream().buffered() == "NEXT");
  }
}

TEST_CASE("A body that ends early or is malformed is never completed") {
  EventLoop loop = EventLoop::Open().value();
  for (const char* body : {"3\r\nabc\r\n", "3\r\nabcd\r\n", "x\r\n", ""}) {
    Line from(loop), to(loop);
    if (*body != '\0') from.Send(body);
    from.Finish();
    Moved moved = Pump(loop, from, to, kChunked, kChunked);
    INFO(body);
    bool malformed = *body == 'x' || std::string_view(body).substr(0, 7) == "3\r\nabcd";
    REQUIRE_FALSE(moved.status.ok());
    CHECK(moved.status.error().code == (malformed ? Code::kInvalid : Code::kIo));
    CHECK(to.Arrived().find("0\r\n\r\n") == std::string::npos);
  }
}

TEST_CASE("A body without framing ends with its connection") {
  EventLoop loop = EventLoop::Open().value();
  Line from(loop), to(loop);
  from.Send("abc");
  from.Finish();
  CHECK(Pump(loop, from, to, kUntilClose, kUntilClose).status.ok());
  CHECK(to.Arrived() == "abc");
}

TEST_CASE("A body never leaves with another length than its head said") {
  EventLoop loop = EventLoop::Open().value();
  for (uint64_t said : {uint64_t{4}, uint64_t{6}}) {
    Line from(loop), to(loop);
    from.Send("hello");
    Moved moved = Pump(loop, from, to, {BodyFraming::kLength, 5}, {BodyFraming::kLength, said});
    CHECK_FALSE(moved.status.ok());
  }
}

Task<Status> SendSmall(Http1BodyWriter& writer) {
  writer.Begin("HEAD\r\n\r\n", {BodyFraming::kLength, 4});
  Status written = co_await writer.Write("body");
  co_return written;
}

TEST_CASE("A small body waits for what follows, to travel with its head") {
  EventLoop loop = EventLoop::Open().value();
  Line to(loop);
  Http1BodyWriter writer(to.stream());
  CHECK(RunUntilDone(loop, SendSmall(writer)).ok());
  CHECK(to.Arrived().empty());
  CHECK(RunUntilDone(loop, writer.Finish({})).ok());
  CHECK(to.Arrived() == "HEAD\r\n\r\nbody");
  CHECK(writer.finished());
}

TEST_CASE("ReadHead takes one head and tells the ways to have none") {
  EventLoop loop = EventLoop::Open().value();
  HeadBounds bounds{64, Deadline::After(kHeadTimeout)};
  Line line(loop);
  line.Send("GET / HT");
  line.Send("TP/1.1\r\nHost: a\r\n\r\nbody");
  HeadText head = RunUntilDone(loop, ReadHead(line.stream(), bounds));
  CHECK(head.kind == HeadText::kHead);
  CHECK(head.text == "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(line.stream().buffered() == "body");
  struct Case {
    std::string sent;
    HeadText::Kind kind;
  };
  for (const Case& each : {Case{"", HeadText::kEnd}, Case{"GET /", HeadText::kMalformed},
                           Case{"GET / HTTP/1.1\n", HeadText::kMalformed},
                           Case{std::string(65, 'A'), HeadText::kTooLong},
                           Case{std::string(80, 'A') + "\r\n\r\n", HeadText::kTooLong}}) {
    Line other(loop);
    if (!each.sent.empty()) other.Send(each.sent);
    other.Finish();
    INFO(each.sent);
    CHECK(RunUntilDone(loop, ReadHead(other.stream(), bounds)).kind == each.kind);
  }
}

TEST_CASE("A deadline that has passed ends a wait") {
  EventLoop loop = EventLoop::Open().value();
  Line line(loop);
  HeadText head = RunUntilDone(
      loop, ReadHead(line.stream(), {64, Deadline::After(std::chrono::milliseconds(0))}));
  CHECK(head.kind == HeadText::kFailed);
  CHECK(head.why == "timed out");
}

TEST_CASE("A relay copies both ways and lets one side finish first") {
  EventLoop loop = EventLoop::Open().value();
  Line a(loop), b(loop);
  a.Send("to b");
  a.Finish();
  b.Send("to a");
  b.Finish();
  RunUntilDone(loop, Relay(loop, a.stream(), b.stream()));
  CHECK(a.Arrived() == "to a");
  CHECK(b.Arrived() == "to b");
}

Task<Done> SetLater(EventLoop& loop, Signal& signal) {
  co_await loop.Sleep(Deadline::After(std::chrono::milliseconds(0)));
  signal.Set();
  co_return Done{};
}

Task<bool> Await(Signal& signal, Deadline deadline) {
  bool set = co_await signal.Within(deadline);
  co_return set;
}

TEST_CASE("A signal wakes its waiter, before or after it waits, or the deadline does") {
  EventLoop loop = EventLoop::Open().value();
  Signal signal(loop);
  Deadline now = Deadline::After(std::chrono::milliseconds(0));
  CHECK_FALSE(RunUntilDone(loop, Await(signal, now)));
  CHECK_FALSE(signal.is_set());
}

TEST_CASE("A signal that is set wakes at once") {
  EventLoop loop = EventLoop::Open().value();
  Signal signal(loop);
  loop.Spawn(SetLater(loop, signal));
  CHECK(RunUntilDone(loop, Await(signal, Deadline::Never())));
  CHECK(signal.is_set());
}

}  // namespace
}  // namespace gateway
