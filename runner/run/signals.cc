// SPDX-License-Identifier: Apache-2.0
#include "run/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>

namespace run {

std::chrono::nanoseconds OwnProcessorTime() {
  timespec time{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Result<Signals> CatchSignals() {
  sigset_t caught;
  ::sigemptyset(&caught);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaddset(&caught, signal);
  if (::sigprocmask(SIG_BLOCK, &caught, nullptr) != 0) return Errno("sigprocmask");
  Signals signals{Fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK)),
                  Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
  if (!signals.caught.valid()) return Errno("signalfd");
  if (!signals.stop.valid()) return Errno("eventfd");
  return signals;
}

std::optional<EndCause> PendingEnd() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return std::nullopt;
  if (::sigismember(&pending, SIGINT) == 1) return EndKind::kInterrupted;
  bool terminated = ::sigismember(&pending, SIGTERM) == 1 || ::sigismember(&pending, SIGHUP) == 1;
  return terminated ? std::optional<EndCause>(EndKind::kTerminated) : std::nullopt;
}

}  // namespace run
