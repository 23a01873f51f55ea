// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/limits.h"

namespace gateway {
namespace {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

SocketAddress ToSocketAddress(const policy::Address& address, uint16_t port) {
  SocketAddress result;
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    ::memcpy(&v4.sin_addr, &address.bytes[12], 4);
    ::memcpy(&result.bytes, &v4, sizeof v4);
    result.size = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
    ::memcpy(&result.bytes, &v6, sizeof v6);
    result.size = sizeof v6;
  }
  return result;
}

std::vector<policy::Address> LoopbackAddresses() {
  return {*policy::ParseAddress("127.0.0.1"), *policy::ParseAddress("::1")};
}

}  // namespace

Task<RouteDecision> DecideRoute(Services& services, Authority authority,
                                policy::Handling handling) {
  RouteDecision decision;
  std::vector<policy::Address> resolved;
  if (policy::IsHostAlias(authority.host)) {
    resolved = LoopbackAddresses();
  } else {
    Result<std::vector<policy::Address>> answer =
        co_await services.resolver.Resolve(authority.host);
    if (!answer.ok()) {
      decision.failure = answer.error().what;
      co_return decision;
    }
    resolved = std::move(answer).value();
  }
  policy::DestinationDecision destination =
      policy::DecideDestination(handling, authority.host, authority.port, resolved);
  decision.allowed = destination.allowed && !destination.addresses.empty();
  decision.label = std::move(destination.label);
  decision.route = Route{std::move(authority), std::move(destination.addresses)};
  co_return decision;
}

Task<Status> Upstream::Dial(policy::Address address) {
  SocketAddress peer = ToSocketAddress(address, route_.authority.port);
  Fd socket(::socket(peer.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) co_return Errno("socket");
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int raw = socket.get();
  auto stream = std::make_unique<Stream>(services_.loop, std::move(socket));
  int result = ::connect(raw, reinterpret_cast<const sockaddr*>(&peer.bytes), peer.size);
  if (result != 0 && errno != EINPROGRESS) co_return Errno("connect");
  if (result != 0) {
    bool ready = co_await services_.loop.Writable(raw, Deadline::After(kConnectTimeout));
    if (!ready) co_return Error{Code::kTemporary, "connect: timed out"};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(raw, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) co_return Errno("connect", error);
  }
  stream_ = std::move(stream);
  used_ = false;
  co_return Ok();
}

Task<Status> Upstream::Connect() {
  if (stream_ && !stream_->IsStale()) co_return Ok();
  stream_.reset();
  Status last = Error{Code::kIo, "no address"};
  for (const policy::Address& address : route_.addresses) {
    last = co_await Dial(address);
    if (last.ok()) break;
  }
  co_return last;
}

Task<Status> Upstream::ConnectTls() {
  if (stream_ && stream_->tls() && !stream_->IsStale()) co_return Ok();
  if (stream_ && stream_->tls()) stream_.reset();
  Status connected = co_await Connect();
  if (!connected.ok()) co_return connected;
  Result<SslOwner> ssl = services_.trust.NewClient(route_.authority.host, route_.authority.port);
  if (!ssl.ok()) co_return std::move(ssl).error();
  Deadline deadline = Deadline::After(kHandshakeTimeout);
  Status shaken = co_await stream_->StartTls(std::move(ssl).value(), deadline);
  if (!shaken.ok()) stream_.reset();
  co_return shaken;
}

}  // namespace gateway
