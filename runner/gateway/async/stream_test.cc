// SPDX-License-Identifier: Apache-2.0
#include "gateway/async/stream.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "gateway/async/test_line.h"

namespace gateway {
namespace {

Task<Result<size_t>> Fill(TestLine& line, Deadline deadline) {
  Result<size_t> read = co_await line.stream().Fill(deadline);
  co_return read;
}

Result<size_t> FillNow(EventLoop& loop, TestLine& line) {
  return RunUntilDone(loop, Fill(line, Late()));
}

Status WriteNow(EventLoop& loop, TestLine& line, std::string_view bytes) {
  return RunUntilDone(loop, line.stream().Write(bytes));
}

// Calls `act` while another coroutine waits.
template <typename Act>
Task<void> After(EventLoop& loop, Act act) {
  co_await loop.Sleep(Deadline::After(std::chrono::milliseconds(1)));
  act();
}

TEST_CASE("What arrives is buffered until it is consumed; then comes the end") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  line.Send("one");
  line.Send("two");
  line.Finish();
  CHECK(FillNow(loop, line).value() == 3);
  CHECK(FillNow(loop, line).value() == 3);
  CHECK(line.stream().buffered() == "onetwo");
  line.stream().Consume(4);
  CHECK(line.stream().buffered() == "wo");
  CHECK(FillNow(loop, line).value() == 0);
  CHECK(line.stream().buffered() == "wo");
}

TEST_CASE("A buffer that nobody empties is full at its bound") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  const std::string piece(kStreamBufferBytes, 'x');
  Result<size_t> read = size_t{0};
  size_t total = 0;
  for (int sent = 0; sent < 3; ++sent) {
    line.Send(piece);
    read = FillNow(loop, line);
    if (read.ok()) total += read.value();
  }
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == Code::kInvalid);
  CHECK(total == kStreamBufferBytesMax);
}

TEST_CASE("A peer that has finished sending is still written to") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  line.Finish();
  CHECK(FillNow(loop, line).value() == 0);
  CHECK(WriteNow(loop, line, "an answer").ok());
  CHECK(line.Arrived() == "an answer");
  CHECK_FALSE(line.Ended());
  line.stream().FinishWriting();
  CHECK(line.Ended());
}

TEST_CASE("A read ends with its deadline, and can be repeated") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  Result<size_t> late = RunUntilDone(loop, Fill(line, Soon()));
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == Code::kTemporary);
  line.Send("x");
  CHECK(FillNow(loop, line).value() == 1);
}

TEST_CASE("Whoever waits is woken when the stream is cut, or its reading, or its peer goes") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  SECTION("Abort") {
    loop.Spawn(After(loop, [&] { line.stream().Abort(); }));
    Result<size_t> read = FillNow(loop, line);
    CHECK((!read.ok() || read.value() == 0));
    CHECK(WriteNow(loop, line, "x").error().code == Code::kIo);
  }
  SECTION("AbortReading leaves the writing") {
    loop.Spawn(After(loop, [&] { line.stream().AbortReading(); }));
    CHECK(FillNow(loop, line).value() == 0);
    CHECK(WriteNow(loop, line, "x").ok());
    CHECK(line.Arrived() == "x");
  }
  SECTION("the peer is gone") {
    loop.Spawn(After(loop, [&] { line.Close(); }));
    Result<size_t> read = FillNow(loop, line);
    CHECK((!read.ok() || read.value() == 0));
    CHECK(WriteNow(loop, line, "x").error().code == Code::kIo);
  }
}

// A line that takes bytes, not messages.
struct ByteLine {
  explicit ByteLine(EventLoop& loop) {
    int raw[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, raw) == 0);
    far = Fd(raw[0]);
    near.emplace(loop, Fd(raw[1]));
  }
  Fd far;
  std::optional<Stream> near;
};

Task<void> DrainBytes(EventLoop& loop, int fd, size_t size, std::string& all) {
  std::string piece(65536, '\0');
  while (all.size() < size) {
    ssize_t n = ::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT);
    if (n > 0) all.append(piece, 0, static_cast<size_t>(n));
    if (n <= 0) co_await loop.Sleep(Deadline::After(std::chrono::milliseconds(1)));
  }
}

TEST_CASE("A write waits until a slow peer has taken all of it") {
  EventLoop loop = EventLoop::Open().value();
  ByteLine line(loop);
  std::string sent(size_t{4} << 20, '\0');
  for (size_t at = 0; at < sent.size(); ++at) sent[at] = static_cast<char>(at % 251);
  std::string arrived;
  loop.Spawn(DrainBytes(loop, line.far.get(), sent.size(), arrived));
  CHECK(RunUntilDone(loop, line.near->Write(sent)).ok());
  while (arrived.size() < sent.size()) {
    RunUntilDone(loop, After(loop, [] {}));
  }
  CHECK(arrived == sent);
}

TEST_CASE("Linger gives the peer its answer although it has sent more than was read") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  line.Send("read");
  line.Send("never read");
  CHECK(FillNow(loop, line).value() == 4);
  CHECK(WriteNow(loop, line, "refused").ok());
  bool heard = false;
  loop.Spawn(After(loop, [&] {
    line.Finish();
    heard = true;
  }));
  auto began = Deadline::Clock::now();
  RunUntilDone(loop, line.stream().Linger());
  CHECK(Deadline::Clock::now() - began < kLingerTimeout);
  CHECK(heard);
  CHECK(line.Arrived() == "refused");
  CHECK(line.Ended());
}

TEST_CASE("A stream is stale once its peer has gone or has spoken unasked") {
  EventLoop loop = EventLoop::Open().value();
  TestLine line(loop);
  CHECK_FALSE(line.stream().IsStale());
  SECTION("unasked") {
    line.Send("HTTP/1.1 408 Request Timeout\r\n\r\n");
    CHECK(line.stream().IsStale());
  }
  SECTION("gone") {
    line.Close();
    CHECK(line.stream().IsStale());
  }
  SECTION("gone while the loop was watching") {
    CHECK(CodeOf(RunUntilDone(loop, Fill(line, Soon()))) == Code::kTemporary);
    CHECK_FALSE(line.stream().IsStale());
    line.Close();
    RunUntilDone(loop, After(loop, [] {}));
    CHECK(line.stream().IsStale());
  }
  SECTION("half an answer is buffered") {
    line.Send("x");
    CHECK(FillNow(loop, line).ok());
    CHECK(line.stream().IsStale());
  }
}

TEST_CASE("Streams that share an allowance pass no byte beyond it") {
  EventLoop loop = EventLoop::Open().value();
  TestLine first(loop);
  TestLine second(loop);
  int refusals = 0;
  ByteAllowance allowance(10, "used up", [&] { ++refusals; });
  first.stream().Bound(&allowance);
  second.stream().Bound(&allowance);
  CHECK(WriteNow(loop, first, "1234").ok());
  second.Send("56");
  CHECK(FillNow(loop, second).value() == 2);
  CHECK(refusals == 0);
  Status cut = WriteNow(loop, second, "7890and more");
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().what == "used up");
  CHECK(second.Arrived() == "7890");
  first.Send("x");
  Result<size_t> read = FillNow(loop, first);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().what == "used up");
  CHECK(refusals == 1);
}

}  // namespace
}  // namespace gateway
