// SPDX-License-Identifier: Apache-2.0
// HTTP/2 towards servers: one connection that many requests of one client connection share.
#pragma once

#include <list>
#include <memory>

#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"
#include "gateway/http/message.h"

namespace gateway {

// The HTTP/2 connections of one client to one destination: another is added when the server takes
// no more requests on those that there are.
class Http2Upstreams {
 public:
  explicit Http2Upstreams(EventLoop& loop);
  ~Http2Upstreams();

  // Returns a place for one request; null if a connection must be added first. Closes connections
  // that take no request and carry none.
  std::unique_ptr<ServerRequest> Take();
  // Returns true if no connection may be added.
  bool full() const;
  // Adds a connection on which nothing was sent yet. `stream` has agreed on HTTP/2 inside TLS, or
  // is known to speak it.
  void Add(std::unique_ptr<Stream> stream);
  // Says goodbye on each connection; called before this is destroyed, when no request is left.
  Task<void> Close();

 private:
  friend class Http2ServerRequest;
  struct Connection;

  Task<void> Carry(Connection& connection);

  EventLoop& loop_;
  std::list<std::unique_ptr<Connection>> connections_;
};

}  // namespace gateway
