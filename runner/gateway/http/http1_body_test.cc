// SPDX-License-Identifier: Apache-2.0
// The moving parts on socket pairs: heads, bodies and relays.
#include "gateway/http/http1_body.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "gateway/async/limits.h"
#include "gateway/async/test_line.h"
#include "gateway/http/head_reader.h"
#include "gateway/http/limits.h"
#include "gateway/http/relay.h"

namespace gateway {
namespace {

// The end of a body that moved from one stream to another.
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

Moved Pump(EventLoop& loop, TestLine& from, TestLine& to, BodyFraming in, BodyFraming out) {
  return RunUntilDone(loop, Move(from.stream(), to.stream(), in, out));
}

constexpr BodyFraming kChunked{BodyFraming::kChunked, 0};
constexpr BodyFraming kUntilClose{BodyFraming::kUntilClose, 0};

TEST_CASE("A body of a known length stops there and leaves the rest") {
  EventLoop loop = EventLoop::Open().value();
  TestLine from(loop), to(loop);
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
    TestLine from(loop), to(loop);
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
    TestLine from(loop), to(loop);
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
  TestLine from(loop), to(loop);
  from.Send("abc");
  from.Finish();
  CHECK(Pump(loop, from, to, kUntilClose, kUntilClose).status.ok());
  CHECK(to.Arrived() == "abc");
}

TEST_CASE("A body never leaves with another length than its head said") {
  EventLoop loop = EventLoop::Open().value();
  for (uint64_t said : {uint64_t{4}, uint64_t{6}}) {
    TestLine from(loop), to(loop);
    from.Send("hello");
    Moved moved = Pump(loop, from, to, {BodyFraming::kLength, 5}, {BodyFraming::kLength, said});
    CHECK(CodeOf(moved.status) == Code::kBug);
  }
}

Task<Status> SendSmall(Http1BodyWriter& writer) {
  writer.Begin("HEAD\r\n\r\n", {BodyFraming::kLength, 4});
  Status written = co_await writer.Write("body");
  co_return written;
}

TEST_CASE("A small body waits for what follows, to travel with its head") {
  EventLoop loop = EventLoop::Open().value();
  TestLine to(loop);
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
  TestLine line(loop);
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
    TestLine other(loop);
    if (!each.sent.empty()) other.Send(each.sent);
    other.Finish();
    INFO(each.sent);
    CHECK(RunUntilDone(loop, ReadHead(other.stream(), bounds)).kind == each.kind);
  }
}

TEST_CASE("A deadline that has passed ends a wait") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  HeadText head = RunUntilDone(
      loop, ReadHead(line.stream(), {64, Deadline::After(std::chrono::milliseconds(0))}));
  CHECK(head.kind == HeadText::kFailed);
  CHECK(head.why == "timed out");
}

TEST_CASE("A relay copies both ways and lets one side finish first") {
  EventLoop loop = EventLoop::Open().value();
  TestLine a(loop), b(loop);
  a.Send("to b");
  a.Finish();
  b.Send("to a");
  b.Finish();
  RunUntilDone(loop, Relay(loop, a.stream(), b.stream()));
  CHECK(a.Arrived() == "to a");
  CHECK(b.Arrived() == "to b");
}

}  // namespace
}  // namespace gateway
