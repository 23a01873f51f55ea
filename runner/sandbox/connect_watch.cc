// SPDX-License-Identifier: Apache-2.0
#include "sandbox/connect_watch.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "sandbox/plan.h"

namespace sandbox {
namespace {

// The socket address in the caller's memory, as the kernel would take it for IPv4 or IPv6.
std::optional<Target> ReadTarget(const Connect& connect, bool* v6) {
  sockaddr_in6 found{};
  iovec ours{&found, std::min<size_t>(connect.address_size, sizeof found)};
  iovec theirs{reinterpret_cast<void*>(connect.address), ours.iov_len};
  ssize_t size = ::process_vm_readv(connect.thread, &ours, 1, &theirs, 1, 0);
  Target target;
  *v6 = found.sin6_family == AF_INET6;
  if (*v6 && size == sizeof found) {
    ::memcpy(target.address.bytes.data(), &found.sin6_addr, sizeof found.sin6_addr);
    target.port = ntohs(found.sin6_port);
    return target;
  }
  if (found.sin6_family != AF_INET || size < static_cast<ssize_t>(sizeof(sockaddr_in))) {
    return std::nullopt;
  }
  sockaddr_in found4;
  ::memcpy(&found4, &found, sizeof found4);
  target.address.bytes[10] = target.address.bytes[11] = 0xff;
  ::memcpy(&target.address.bytes[12], &found4.sin_addr, sizeof found4.sin_addr);
  target.port = ntohs(found4.sin_port);
  return target;
}

// The unspecified address connects to loopback.
bool IsCaptured(const policy::Address& address) {
  bool local = policy::IsLoopback(address) || address == policy::Address{} ||
               address == policy::ParseAddress("0.0.0.0");
  return !local && address != policy::ParseAddress(kProxyAddress);
}

// The kernel tells a socket's protocol as an attribute of the descriptor.
bool IsTcp(const Connect& connect, bool v6) {
  std::string path =
      "/proc/" + std::to_string(connect.thread) + "/fd/" + std::to_string(connect.socket);
  char name[32];
  ssize_t size = ::getxattr(path.c_str(), "system.sockprotoname", name, sizeof name);
  if (size <= 0) return false;
  std::string_view protocol(name, ::strnlen(name, static_cast<size_t>(size)));
  if (protocol.starts_with("MP")) protocol.remove_prefix(2);
  return protocol == (v6 ? "TCPv6" : "TCP");
}

}  // namespace

std::optional<Connect> ConnectWatch::Take(short events) {
  if ((events & POLLIN) == 0) {
    listener_.Close();
    return std::nullopt;
  }
  seccomp_notif notice{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) return std::nullopt;
  Connect connect;
  connect.id = notice.id;
  connect.thread = static_cast<pid_t>(notice.pid);
  connect.socket = static_cast<int>(notice.data.args[0]);
  connect.address = notice.data.args[1];
  connect.address_size = static_cast<uint32_t>(notice.data.args[2]);
  return connect;
}

bool ConnectWatch::Continue(const Connect& connect) const {
  seccomp_notif_resp answer{};
  answer.id = connect.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

std::optional<Target> ConnectWatch::ReadCapturedTarget(const Connect& connect) const {
  bool v6 = false;
  std::optional<Target> target = ReadTarget(connect, &v6);
  if (!target || !IsCaptured(target->address) || !IsTcp(connect, v6)) return std::nullopt;
  uint64_t id = connect.id;
  bool waits = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
  return waits ? target : std::nullopt;
}

void ConnectWatch::Refuse(const Connect& connect) const {
  seccomp_notif_resp answer{};
  answer.id = connect.id;
  answer.error = -ECONNREFUSED;
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace sandbox
