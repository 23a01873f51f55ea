// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/call_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>

// Linux 6.6.
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

namespace sandbox {
namespace {

seccomp_notif_addfd CopyOf(uint64_t id, int fd, bool close_on_exec) {
  seccomp_notif_addfd copy{};
  copy.id = id;
  copy.srcfd = static_cast<uint32_t>(fd);
  copy.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  return copy;
}

}  // namespace

// The caller sleeps until it is answered, so its processor is the one that is free: to wake another
// takes longer than most answers.
CallListener::CallListener(Fd listener) : listener_(std::move(listener)) {
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

std::optional<Call> CallListener::Take(short events) {
  if ((events & POLLIN) == 0) {
    listener_.Close();
    return std::nullopt;
  }
  seccomp_notif notice{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) return std::nullopt;
  Call call;
  call.id = notice.id;
  call.thread = static_cast<pid_t>(notice.pid);
  call.number = notice.data.nr;
  std::copy(std::begin(notice.data.args), std::end(notice.data.args), call.arguments.begin());
  return call;
}

bool CallListener::Waits(uint64_t id) const {
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

bool CallListener::Continue(uint64_t id) const {
  seccomp_notif_resp answer{};
  answer.id = id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

bool CallListener::Answer(uint64_t id, int64_t value) const {
  seccomp_notif_resp answer{};
  answer.id = id;
  if (value < 0) {
    answer.error = static_cast<int32_t>(value);
  } else {
    answer.val = value;
  }
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

bool CallListener::AnswerWithCopy(uint64_t id, int fd, bool close_on_exec) const {
  seccomp_notif_addfd copy = CopyOf(id, fd, close_on_exec);
  copy.flags = SECCOMP_ADDFD_FLAG_SEND;
  int added = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &copy);
  if (added >= 0) return true;
  if (errno != EINVAL) return Answer(id, -errno) && false;
  copy.flags = 0;  // Before Linux 5.14 it takes two steps.
  added = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &copy);
  return Answer(id, added >= 0 ? added : -errno) && added >= 0;
}

bool CallListener::Replace(uint64_t id, int theirs, int fd, bool close_on_exec) const {
  seccomp_notif_addfd copy = CopyOf(id, fd, close_on_exec);
  copy.flags = SECCOMP_ADDFD_FLAG_SETFD;
  copy.newfd = static_cast<uint32_t>(theirs);
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &copy) >= 0;
}

}  // namespace sandbox
