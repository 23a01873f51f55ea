// SPDX-License-Identifier: Apache-2.0
// A WebSocket whose messages are inspected: frames in both directions, and a close frame with the
// reason if the gateway ends it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gateway/async/event_loop.h"
#include "gateway/async/task.h"
#include "gateway/http/limits.h"
#include "gateway/http/relay.h"
#include "gateway/inspect/websocket_inspector.h"

namespace gateway {

class WebSocketSession {
 public:
  // Everything is borrowed. `faulted` takes what a peer did wrong, for the record; it may be called
  // once.
  WebSocketSession(EventLoop& loop, bool deflate, MessageJudge& judge, LargeMessages& large,
                   std::function<void(const WebSocketEnd&)> faulted);

  // Sets `replaced`, which is true once another policy is in force, and reading from the client was
  // ended for that. The close frame says so.
  void CloseWhen(std::function<bool()> replaced) { replaced_ = std::move(replaced); }

  // Passes messages until both sides have finished, one has failed, a message may not pass, or
  // nothing has moved for kTunnelIdleTimeout. Once.
  Task<void> Run(RelayEnd client, RelayEnd server);

 private:
  Task<void> MoveToServer(RelayEnd client, RelayEnd server);
  Task<void> MoveToClient(RelayEnd client, RelayEnd server);
  Task<bool> CopyAnswers(RelayEnd client, RelayEnd server);
  Task<bool> EndToClient(RelayEnd client, std::string passed);
  Task<void> CloseBothSides(RelayEnd client, RelayEnd server);
  Task<Result<BodyReader::Piece>> ReadClient(RelayEnd client);
  Task<bool> AwaitRoom();
  size_t FollowServer(std::string_view bytes, std::string& passed);
  void End(WebSocketEnd end);

  EventLoop& loop_;
  WebSocketInspector inspector_;
  LargeMessages& large_;
  std::function<void(const WebSocketEnd&)> faulted_;
  std::function<bool()> replaced_;
  codec::WebSocketDecoder answers_;  // The server's frames, to know where they end.
  std::string held_;                 // The beginning of such a frame's head.
  std::string dropped_;
  std::optional<WebSocketEnd> end_;
  bool server_closed_ = false;  // Its close frame went to the client: we must not send another.
  Signal to_client_done_;
  Deadline::Clock::time_point last_move_ = Deadline::Clock::now();
};

}  // namespace gateway
