// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/process_call.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <optional>
#include <string>

#include "base/sys.h"
#include "sandbox/call/caller_view.h"

namespace sandbox {
namespace {

constexpr int kIoprioWhoProcess = 1;

// Returns the process that the call is about; nullopt if it is about a group or a user.
std::optional<pid_t> ProcessOf(const Call& call) {
  switch (call.number) {
    case SYS_setpriority:
      return call.Number(0) == PRIO_PROCESS ? std::optional(call.Number(1)) : std::nullopt;
    case SYS_ioprio_set:
      return call.Number(0) == kIoprioWhoProcess ? std::optional(call.Number(1)) : std::nullopt;
    default:
      return call.Number(0);
  }
}

bool IsThreadOf(pid_t process, pid_t caller) {
  return sys::Exists("/proc/" + std::to_string(caller) + "/task/" + std::to_string(process));
}

bool IsChildOf(pid_t process, pid_t caller) {
  std::optional<pid_t> parent = StatusNumber(process, "PPid");
  return parent && parent == StatusNumber(caller, "Tgid");
}

}  // namespace

bool AnswerProcessCall(const CallListener& listener, const Call& call) {
  switch (call.number) {
    case SYS_pidfd_open:
    case SYS_sched_setaffinity:
    case SYS_sched_setattr:
    case SYS_sched_setparam:
    case SYS_sched_setscheduler:
    case SYS_setpriority:
    case SYS_ioprio_set:
      break;
    default:
      return false;
  }
  std::optional<pid_t> process = ProcessOf(call);
  bool own = process && IsThreadOf(*process, call.thread);
  if (process && call.number == SYS_pidfd_open) own = own || IsChildOf(*process, call.thread);
  if (own) {
    (void)listener.Continue(call.id);
  } else {
    (void)listener.Answer(call.id, -EPERM);
  }
  return true;
}

}  // namespace sandbox
