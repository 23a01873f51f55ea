// SPDX-License-Identifier: Apache-2.0
#include "sandbox/connect_watch.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace sandbox {
namespace {

// The family of the address at `address` in `thread`'s memory, `size` bytes of it. To read that
// costs more than most of what is read of a connection; few paths of Unix sockets are so short.
int FamilyOf(pid_t thread, uint64_t address, uint64_t size) {
  if (size == sizeof(sockaddr_in)) return AF_INET;
  if (size == sizeof(sockaddr_in6)) return AF_INET6;
  sa_family_t family = AF_UNSPEC;
  iovec here{&family, sizeof family};
  iovec there{reinterpret_cast<void*>(address), sizeof family};
  bool read = ::process_vm_readv(thread, &here, 1, &there, 1, 0) == sizeof family;
  return read ? family : AF_UNSPEC;
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
  connect.family = FamilyOf(connect.thread, notice.data.args[1], notice.data.args[2]);
  return connect;
}

bool ConnectWatch::Continue(const Connect& connect) const {
  seccomp_notif_resp answer{};
  answer.id = connect.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

}  // namespace sandbox
