// SPDX-License-Identifier: Apache-2.0
#include "gateway/dial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "gateway/names/limits.h"
#include "gateway/names/socket_address.h"

namespace gateway {

Task<Result<std::unique_ptr<Stream>>> Dial(EventLoop& loop, policy::Address address,
                                           uint16_t port) {
  SocketAddress peer = ToSocketAddress(address, port);
  Fd socket(::socket(peer.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) co_return Errno("socket");
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int raw = socket.get();
  auto stream = std::make_unique<Stream>(loop, std::move(socket));
  int result = ::connect(raw, peer.get(), peer.size);
  if (result != 0 && errno != EINPROGRESS) co_return Errno("connect");
  if (result != 0) {
    bool ready = co_await loop.Writable(raw, Deadline::After(kConnectTimeout));
    if (!ready) co_return Error{Code::kTemporary, "connect: timed out"};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(raw, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) co_return Errno("connect", error);
  }
  co_return stream;
}

}  // namespace gateway
