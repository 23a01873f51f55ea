// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/relay.h"

#include "gateway/http/http1_body.h"
#include "gateway/http/limits.h"

namespace gateway {
namespace {

// The state that both directions share; lives in Relay's frame.
struct Pair {
  explicit Pair(EventLoop& loop) : other_done(loop) {}
  Signal other_done;
  Deadline::Clock::time_point last_move = Deadline::Clock::now();
};

// Gives up only when the other direction is silent too.
Task<Result<BodyReader::Piece>> ReadOrIdle(BodyReader& from, Pair& pair) {
  for (;;) {
    Result<BodyReader::Piece> piece = co_await from.Read(Deadline::After(kTunnelIdleTimeout));
    bool idle = Deadline::Clock::now() - pair.last_move >= kTunnelIdleTimeout;
    if (piece.ok() || piece.error().code != Code::kTemporary || idle) co_return piece;
  }
}

// Returns true if the source finished, and the sink was told so.
Task<bool> CopyOneWay(BodyReader& from, BodyWriter& to, Pair& pair) {
  for (;;) {
    Result<BodyReader::Piece> piece = co_await ReadOrIdle(from, pair);
    if (!piece.ok()) co_return false;
    Status written = co_await to.Write(piece.value().bytes);
    if (written.ok() && piece.value().end) written = co_await to.Finish({});
    if (written.ok() && !piece.value().end && !from.ready()) written = co_await to.Flush();
    if (!written.ok()) co_return false;
    if (piece.value().end) co_return true;
    pair.last_move = Deadline::Clock::now();
  }
}

// One direction that failed ends the other.
Task<void> CopyAndSignal(RelayEnd a, RelayEnd b, Pair& pair) {
  bool finished = co_await CopyOneWay(b.from, a.to, pair);
  if (!finished) {
    a.from.Cancel();
    b.from.Cancel();
  }
  pair.other_done.Set();
}

// A connection as a body without framing, both ways.
struct RawEnd {
  explicit RawEnd(Stream& stream) : from(stream, kRaw), to(stream) { to.Begin({}, kRaw); }
  static constexpr codec::BodyFraming kRaw{codec::BodyFraming::kUntilClose, 0};
  Http1BodyReader from;
  Http1BodyWriter to;
};

}  // namespace

Task<void> Relay(EventLoop& loop, RelayEnd a, RelayEnd b) {
  Pair pair(loop);
  loop.Spawn(CopyAndSignal(a, b, pair));
  bool finished = co_await CopyOneWay(a.from, b.to, pair);
  if (!finished) {
    a.from.Cancel();
    b.from.Cancel();
  }
  co_await pair.other_done.Within(Deadline::Never());
}

Task<void> Relay(EventLoop& loop, Stream& a, Stream& b) {
  RawEnd one(a);
  RawEnd other(b);
  co_await Relay(loop, RelayEnd{one.from, one.to}, RelayEnd{other.from, other.to});
}

}  // namespace gateway
