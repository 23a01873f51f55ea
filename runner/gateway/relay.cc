// SPDX-License-Identifier: Apache-2.0
#include "gateway/relay.h"

#include "gateway/limits.h"

namespace gateway {
namespace {

// What both directions share; lives in Relay's frame.
struct Pair {
  explicit Pair(EventLoop& loop) : other_done(loop) {}
  Signal other_done;
  Deadline::Clock::time_point last_move = Deadline::Clock::now();
};

// Gives up only when the other direction is silent too.
Task<bool> FillOrIdle(Stream& from, Pair& pair) {
  for (;;) {
    Result<size_t> read = co_await from.Fill(Deadline::After(kTunnelIdleTimeout));
    if (read.ok()) co_return read.value() > 0;
    bool idle = Deadline::Clock::now() - pair.last_move >= kTunnelIdleTimeout;
    if (read.error().code != Code::kTemporary || idle) {
      from.Abort();
      co_return false;
    }
  }
}

Task<Done> CopyOneWay(Stream& from, Stream& to, Pair& pair) {
  for (;;) {
    if (from.buffered().empty()) {
      bool more = co_await FillOrIdle(from, pair);
      if (!more) break;
    }
    Status written = co_await to.Write(from.buffered());
    if (!written.ok()) {
      from.Abort();  // The other direction of this pair wakes up, too.
      to.Abort();
      co_return Done{};
    }
    from.Consume(from.buffered().size());
    pair.last_move = Deadline::Clock::now();
  }
  to.FinishWriting();
  co_return Done{};
}

Task<Done> CopyAndTell(Stream& from, Stream& to, Pair& pair) {
  co_await CopyOneWay(from, to, pair);
  pair.other_done.Set();
  co_return Done{};
}

}  // namespace

Task<Done> Relay(EventLoop& loop, Stream& a, Stream& b) {
  Pair pair(loop);
  loop.Spawn(CopyAndTell(b, a, pair));
  co_await CopyOneWay(a, b, pair);
  co_await pair.other_done.Within(Deadline::Never());
  co_return Done{};
}

}  // namespace gateway
