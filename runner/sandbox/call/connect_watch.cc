// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/connect_watch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <string>

#include "sandbox/call/broker.h"
#include "sandbox/call/caller_view.h"

namespace sandbox {
namespace {

// The socket address in the caller's memory.
SocketAddress ReadAddress(const Connect& connect) {
  SocketAddress found;
  iovec ours{&found.bytes, std::min<size_t>(connect.address_size, sizeof found.bytes)};
  iovec theirs{reinterpret_cast<void*>(connect.address), ours.iov_len};
  ssize_t size = ::process_vm_readv(connect.thread, &ours, 1, &theirs, 1, 0);
  found.size = static_cast<socklen_t>(std::max<ssize_t>(size, 0));
  return found;
}

bool IsTcp(const Connect& connect, bool v6) {
  std::string protocol = SocketProtocol(connect.thread, connect.socket);
  if (protocol.starts_with("MP")) protocol.erase(0, 2);
  return protocol == (v6 ? "TCPv6" : "TCP");
}

}  // namespace

ConnectWatch::ConnectWatch() = default;
ConnectWatch::ConnectWatch(Fd listener) : listener_(std::move(listener)) {}
ConnectWatch::ConnectWatch(Fd listener, std::unique_ptr<Broker> broker)
    : listener_(std::move(listener)), broker_(std::move(broker)) {}
ConnectWatch::ConnectWatch(ConnectWatch&&) noexcept = default;
ConnectWatch& ConnectWatch::operator=(ConnectWatch&&) noexcept = default;
ConnectWatch::~ConnectWatch() = default;

std::optional<Connect> ConnectWatch::Take(short events, const MoverPlace& place) {
  std::optional<Call> call = listener_.Take(events);
  if (!call) return std::nullopt;
  if (broker_) return broker_->Take(listener_, *call);
  if (call->number != SYS_connect) {
    renames_.Take(listener_, *call, place);
    return std::nullopt;
  }
  Connect connect;
  connect.id = call->id;
  connect.thread = call->thread;
  connect.socket = call->Number(0);
  connect.address = call->arguments[1];
  connect.address_size = static_cast<uint32_t>(call->arguments[2]);
  return connect;
}

bool ConnectWatch::Continue(const Connect& connect) {
  return broker_ ? broker_->Carry(listener_, connect) : listener_.Continue(connect.id);
}

std::optional<Target> ConnectWatch::ReadCapturedTarget(const Connect& connect) const {
  if (broker_) {
    return IsProxy(connect.target.address) ? std::nullopt : std::optional(connect.target);
  }
  SocketAddress address = ReadAddress(connect);
  std::optional<Target> target = ParseTarget(address);
  if (!target || IsLocal(target->address) || IsOwnAddress6(target->address) ||
      IsProxy(target->address) || !IsTcp(connect, address.bytes.ss_family == AF_INET6)) {
    return std::nullopt;
  }
  return listener_.Waits(connect.id) ? target : std::nullopt;
}

void ConnectWatch::Refuse(const Connect& connect) const {
  (void)listener_.Answer(connect.id, -ECONNREFUSED);
}

}  // namespace sandbox
