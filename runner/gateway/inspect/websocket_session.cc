// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_session.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gateway/async/limits.h"
#include "gateway/http/limits.h"
#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

using codec::WebSocketClose;
using codec::WebSocketOpcode;

std::string RenderClose(const WebSocketEnd& end, std::optional<codec::WebSocketMask> mask) {
  return codec::RenderWebSocketFrame({WebSocketOpcode::kClose, true, false, 0},
                                     codec::RenderWebSocketClose(end.close, end.reason), mask);
}

}  // namespace

WebSocketSession::WebSocketSession(EventLoop& loop, bool deflate, MessageJudge& judge,
                                   LargeMessages& large,
                                   std::function<void(const WebSocketEnd&)> faulted)
    : loop_(loop),
      inspector_(deflate, judge, large),
      large_(large),
      faulted_(std::move(faulted)),
      answers_(codec::WebSocketDecoder::Sender::kServer, deflate, INT64_MAX),
      to_client_done_(loop) {}

Task<void> WebSocketSession::Run(RelayEnd client, RelayEnd server) {
  loop_.Spawn(MoveToClient(client, server));
  co_await MoveToServer(client, server);
  if (end_.has_value()) co_await CloseBothSides(client, server);
  co_await to_client_done_.Within(Deadline::Never());
}

void WebSocketSession::End(WebSocketEnd end) {
  if (end_.has_value()) return;
  if (end.is_fault) faulted_(end);
  end_ = std::move(end);
}

// Reads what the client sends next. A message under way has its own bounds in time; otherwise only
// silence in both directions ends the wait.
Task<Result<BodyReader::Piece>> WebSocketSession::ReadClient(RelayEnd client) {
  for (;;) {
    Deadline deadline = Deadline::After(kTunnelIdleTimeout);
    const auto since = inspector_.assembling_since();
    if (since.has_value()) {
      const auto left = *since + kWebSocketMessageTimeout - std::chrono::steady_clock::now();
      deadline = Deadline::After(std::clamp(std::chrono::duration_cast<milliseconds>(left),
                                            milliseconds(0), kWebSocketPieceTimeout));
    }
    Result<BodyReader::Piece> piece = co_await client.from.Read(deadline);
    if (replaced_ && replaced_()) End({WebSocketClose::kRestart, "policy changed", false});
    if (piece.ok() || piece.error().code != Code::kTemporary || end_.has_value()) co_return piece;
    if (since.has_value()) {
      End({WebSocketClose::kPolicy, "a message takes too long to arrive", true});
      co_return piece;
    }
    if (Deadline::Clock::now() - last_move_ >= kTunnelIdleTimeout) co_return piece;
  }
}

// Returns false if the peer is gone. The client is not read meanwhile, so it waits as well.
Task<bool> WebSocketSession::AwaitRoom() {
  const auto until = *inspector_.assembling_since() + kWebSocketMessageTimeout;
  bool may_wait = large_.waiting < kWebSocketWaitingMax;
  ++large_.waiting;
  while (large_.count >= kWebSocketLargeMax && !end_.has_value() && !to_client_done_.is_set()) {
    if (!may_wait) End({WebSocketClose::kTryLater, "too many large messages", true});
    if (replaced_ && replaced_()) End({WebSocketClose::kRestart, "policy changed", false});
    if (may_wait) co_await loop_.Sleep(Deadline::After(kWebSocketRoomInterval));
    may_wait = may_wait && std::chrono::steady_clock::now() < until;
  }
  --large_.waiting;
  co_return !to_client_done_.is_set();
}

Task<void> WebSocketSession::MoveToServer(RelayEnd client, RelayEnd server) {
  std::string out;
  bool over = false;  // The client has finished.
  for (;;) {
    std::string_view bytes;
    if (inspector_.lacks_room()) {
      bool there = co_await AwaitRoom();
      if (!there) break;
    } else {
      Result<BodyReader::Piece> piece = co_await ReadClient(client);
      if (!piece.ok() && !end_.has_value()) break;
      if (piece.ok()) bytes = piece.value().bytes;
      over = piece.ok() && piece.value().end;
    }
    if (end_.has_value()) co_return;
    out.clear();
    std::optional<WebSocketEnd> end = inspector_.Feed(bytes, out);
    Status written = co_await server.to.Write(out);
    if (end.has_value()) {
      End(std::move(*end));
      co_return;
    }
    if (written.ok() && over && !inspector_.lacks_room()) {
      (void)co_await server.to.Finish({});
      co_return;
    }
    if (written.ok() && !client.from.ready()) written = co_await server.to.Flush();
    if (!written.ok()) break;
    last_move_ = Deadline::Clock::now();
  }
  server.from.Cancel();
}

// Takes what the server sent and appends to `passed` what may go on to the client: whole heads and
// what there is of payloads. Gives the last position in it after which the gateway may insert a
// frame; npos: there is none. Once the gateway is closing, nothing after the first such position is
// taken: what follows may be the server's answer to our close frame, whose code is not the one the
// client should get.
size_t WebSocketSession::FollowServer(std::string_view bytes, std::string& passed) {
  const bool ending = end_.has_value();
  size_t boundary = answers_.at_boundary() ? 0 : std::string_view::npos;
  passed = std::exchange(held_, {}).append(bytes);
  size_t at = 0;
  while (!ending || boundary == std::string_view::npos) {
    codec::WebSocketDecoder::Step step =
        answers_.Next(std::string_view(passed).substr(at), &dropped_);
    dropped_.clear();
    at += step.consumed;
    if (step.ends) boundary = at;
    if (step.ends && answers_.frame().opcode == WebSocketOpcode::kClose) server_closed_ = true;
    if (step.fault.has_value()) {
      End({step.fault->close, "the server sent " + std::string(step.fault->what), true});
    }
    if (step.consumed == 0) break;
  }
  held_ = passed.substr(at);
  passed.resize(at);
  return boundary;
}

Task<void> WebSocketSession::MoveToClient(RelayEnd client, RelayEnd server) {
  bool finished = co_await CopyAnswers(client, server);
  if (!finished || end_.has_value()) server.from.Cancel();
  // A client that is to be told something first is read to its end by CloseBothSides.
  if (!finished) client.from.Cancel();
  to_client_done_.Set();
}

// Returns true if the client was told how it ends, by the server or by the gateway.
Task<bool> WebSocketSession::CopyAnswers(RelayEnd client, RelayEnd server) {
  std::string passed;
  for (;;) {
    Result<BodyReader::Piece> piece =
        co_await server.from.Read(Deadline::After(kTunnelIdleTimeout));
    bool silent = !piece.ok() && piece.error().code == Code::kTemporary;
    bool moved = Deadline::Clock::now() - last_move_ < kTunnelIdleTimeout;
    if (silent && moved && !end_.has_value()) continue;
    const bool over = !piece.ok() || piece.value().end;
    const bool was_ending = end_.has_value();
    const size_t boundary =
        FollowServer(piece.ok() ? piece.value().bytes : std::string_view(), passed);
    if (end_.has_value() && boundary != std::string_view::npos) {
      bool told = co_await EndToClient(client, passed.substr(0, boundary));
      co_return told&& was_ending;
    }
    if (!piece.ok()) co_return false;
    Status written = co_await client.to.Write(passed);
    if (written.ok() && over) written = co_await client.to.Finish({});
    if (written.ok() && !over && !server.from.ready()) written = co_await client.to.Flush();
    if (!written.ok() || over) co_return written.ok() && !end_.has_value();
    last_move_ = Deadline::Clock::now();
  }
}

// `passed` ends between two frames.
Task<bool> WebSocketSession::EndToClient(RelayEnd client, std::string passed) {
  if (!server_closed_) passed += RenderClose(*end_, std::nullopt);
  Status written = co_await client.to.Write(passed);
  if (written.ok()) written = co_await client.to.Finish({});
  co_return written.ok();
}

// Ends the session: nothing more of what the client sends goes on. Both sides are told, the client
// why.
Task<void> WebSocketSession::CloseBothSides(RelayEnd client, RelayEnd server) {
  const std::string close =
      RenderClose({WebSocketClose::kGoingAway, "", false}, NewWebSocketMask());
  Status written = co_await server.to.Write(close);
  if (written.ok()) (void)co_await server.to.Finish({});
  if (answers_.at_boundary()) server.from.Cancel();
  bool told = co_await to_client_done_.Within(Deadline::After(kWebSocketFarewellTimeout));
  if (!told) server.from.Cancel();
  co_await to_client_done_.Within(Deadline::Never());
  // Closing with unread bytes would take the close frame with them.
  const Deadline deadline = Deadline::After(kWebSocketFarewellTimeout);
  for (size_t bytes = 0; bytes < kLingerBytesMax;) {
    Result<BodyReader::Piece> piece = co_await client.from.Read(deadline);
    if (!piece.ok() || piece.value().end) break;
    bytes += piece.value().bytes.size();
  }
}

}  // namespace gateway
