// SPDX-License-Identifier: Apache-2.0
#include "run/signal_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "base/deadline.h"
#include "base/sys.h"
#include "report/write.h"
#include "run/outcome.h"
#include "run/supervise.h"

namespace run {
namespace {

using std::chrono::milliseconds;

// For the main thread: a download that is given up removes what it has unpacked.
constexpr milliseconds kGrace{2000};
// SIGUSR1 makes the descriptor readable too, and ends nothing.
constexpr milliseconds kLookAgain{100};

bool Readable(int fd, milliseconds within) {
  Result<bool> readable = sys::WaitReadable(fd, Deadline::After(within));
  return !readable.ok() || readable.value();
}

}  // namespace

SignalWatch::SignalWatch(int signals, Recorder record, std::string directory)
    : record_(std::move(record)),
      directory_(std::move(directory)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_(&SignalWatch::Watch, this, signals) {}

SignalWatch::~SignalWatch() {
  (void)::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void SignalWatch::Watch(int signals) {
  for (;;) {
    pollfd sources[2] = {{stop_.get(), POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) return;
    if (sources[0].revents != 0) return;
    if (PendingEnd()) break;
    if (sources[1].revents != 0 && Readable(stop_.get(), kLookAgain)) return;
  }
  if (!Readable(stop_.get(), kGrace)) EndProcess();
}

void SignalWatch::EndProcess() {
  AgentEnd end;
  end.kind = PendingEnd().value_or(EndKind::kTerminated);
  report::OutcomeRecord outcome = DecideOutcome(end, {}, {});
  record_.Note(outcome);
  (void)report::WriteReport(directory_, record_.Finish());
  ::_exit(outcome.exit_code);
}

}  // namespace run
