// SPDX-License-Identifier: Apache-2.0
#include "session/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/sys.h"

namespace session {

short Channel::events() const {
  return static_cast<short>(POLLIN | (waiting_.empty() ? 0 : POLLOUT));
}

void Channel::Send(std::string message) {
  if (closed_) return;
  waiting_bytes_ += message.size();
  waiting_.push_back(std::move(message));
  Flush();
}

void Channel::Flush() {
  while (!closed_ && socket_.valid() && !waiting_.empty()) {
    const std::string& next = waiting_.front();
    if (::send(socket_.get(), next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EINTR) continue;
      closed_ = errno != EAGAIN && errno != EWOULDBLOCK;
      return;
    }
    waiting_bytes_ -= next.size();
    waiting_.pop_front();
  }
}

void Channel::Finish(Deadline deadline) {
  Flush();
  while (!closed_ && !waiting_.empty() && !deadline.passed()) {
    pollfd room{socket_.get(), POLLOUT, 0};
    if (::poll(&room, 1, deadline.poll_ms()) < 0 && errno != EINTR) return;
    Flush();
  }
}

// A message that is too long is a client that speaks another language.
bool Channel::Receive(std::string* message, Fd* fd) {
  if (closed_ || !socket_.valid()) return false;
  pollfd waiting{socket_.get(), POLLIN, 0};
  int ready = ::poll(&waiting, 1, 0);
  if (ready <= 0) return false;
  Result<sys::Message> received =
      sys::ReceiveMessage(socket_.get(), kMessageBytesMax, Deadline::After({}));
  closed_ = !received.ok() || received.value().bytes.empty();
  if (closed_) return false;
  *message = std::move(received.value().bytes);
  *fd = std::move(received.value().fd);
  return true;
}

}  // namespace session
