// SPDX-License-Identifier: Apache-2.0
// The supervisor's end of one client's connection. It never waits; the client's backlog says when
// to stop producing.
#pragma once

#include <deque>
#include <string>

#include "base/deadline.h"
#include "base/fd.h"
#include "session/protocol.h"

namespace session {

// The supervisor's end of one client's connection. Never waits: what the client does not take is
// kept, and full() says when no more should be made.
class Channel {
 public:
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}

  // Gives it a socket, if it had none; until then, what is sent waits.
  void Attach(Fd socket) {
    socket_ = std::move(socket);
    Flush();
  }

  int fd() const { return socket_.get(); }
  // Returns the events for poll(2).
  short events() const;
  bool closed() const { return closed_; }
  void Close() { closed_ = true; }
  bool full() const { return waiting_bytes_ > kWaitingBytesMax; }

  void Send(std::string message);
  // Sends what is taken at once.
  void Flush();
  // Sends all that is left, until `deadline`.
  void Finish(Deadline deadline);
  // Gives the next message, and a descriptor if one came with it. Returns false if there is none
  // yet, or closed().
  bool Receive(std::string* message, Fd* fd);

 private:
  static constexpr size_t kWaitingBytesMax = size_t{1} << 20;

  Fd socket_;
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace session
