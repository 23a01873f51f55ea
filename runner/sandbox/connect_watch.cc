// SPDX-License-Identifier: Apache-2.0
#include "sandbox/connect_watch.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>

namespace sandbox {
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
  return connect;
}

bool ConnectWatch::Continue(const Connect& connect) const {
  seccomp_notif_resp answer{};
  answer.id = connect.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

}  // namespace sandbox
