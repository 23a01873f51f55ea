// SPDX-License-Identifier: Apache-2.0
// A request that becomes a WebSocket, from its head to the end of the connection.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codec/wire/http_head.h"
#include "gateway/async/event_loop.h"
#include "gateway/http/body_filter.h"
#include "gateway/http/relay.h"
#include "gateway/inspect/request_judge.h"
#include "gateway/inspect/websocket_inspector.h"
#include "gateway/inspect/websocket_judge.h"

namespace gateway {

class WebSocketUpgrade {
 public:
  // `asked` is the head as the client sent it; `verdict` let it pass. `record` takes what happens
  // on the connection, and returns false if it could not. Everything else is borrowed.
  WebSocketUpgrade(EventLoop& loop, LargeMessages& large_messages, const RequestContext& context,
                   const RequestVerdict& verdict, const codec::RequestHead& asked,
                   std::function<bool(record::Event)> record);

  // Refuses anything but a handshake of RFC 6455. If messages are to be read, only extensions that
  // allow it are left in `fields`, which will be sent.
  std::optional<OutgoingRefusal> Prepare(codec::HttpFields& fields);
  // Returns the fields of the 101 for the client. Fails with kInvalid if the server's is not what
  // was asked for.
  Result<codec::HttpFields> Accept(const codec::ResponseHead& head);
  // Carries the connection until it is over: message by message, or raw where messages are not
  // inspected.
  Task<void> Carry(RelayEnd client, RelayEnd server);

 private:
  record::Event NewRecord() const;

  EventLoop& loop_;
  LargeMessages& large_messages_;
  const RequestContext& context_;
  const RequestVerdict& verdict_;
  const codec::RequestHead& asked_;
  std::function<bool(record::Event)> record_;
  CredentialTarget target_;
  MessageTreatment treatment_;
  std::string query_;
  bool deflate_offered_ = false;
  bool deflate_ = false;
};

}  // namespace gateway
