// SPDX-License-Identifier: Apache-2.0
#include "run/signal_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "base/deadline.h"
#include "base/sys.h"
#include "base/thread.h"
#include "report/write.h"
#include "run/outcome.h"

namespace run {
namespace {

using std::chrono::milliseconds;

// The time for the main thread: a download that is given up removes what it has unpacked.
constexpr milliseconds kGrace{2000};
// SIGUSR1 makes the descriptor readable too, and ends nothing.
constexpr milliseconds kLookAgain{100};
// The agent's remaining processes of its user are gone by then.
constexpr milliseconds kThreadWait{5000};

bool Readable(int fd, milliseconds within) {
  Result<bool> readable = sys::WaitReadable(fd, Deadline::After(within));
  return !readable.ok() || readable.value();
}

}  // namespace

SignalWatch::SignalWatch(const Signals& signals, Recorder record, std::string directory,
                         Bounds bounds, std::function<void()> remove)
    : record_(std::move(record)),
      directory_(std::move(directory)),
      bounds_(bounds),
      remove_(std::move(remove)),
      signals_(signals) {}

Status SignalWatch::Start() {
  thread_ = TRY(sys::StartThread([this] { Watch(); }, Deadline::After(kThreadWait))
                    .Context("watching for signals"));
  return Ok();
}

SignalWatch::~SignalWatch() {
  if (!thread_.joinable()) return;
  ENSURE(::eventfd_write(signals_.stop.get(), 1) == 0);  // Else the join would wait for ever.
  thread_.join();
  eventfd_t stopped = 0;
  (void)::eventfd_read(signals_.stop.get(), &stopped);  // The next watch starts anew.
}

void SignalWatch::Watch() {
  for (;;) {
    pollfd sources[2] = {{signals_.stop.get(), POLLIN, 0}, {signals_.caught.get(), POLLIN, 0}};
    int wait_ms = bounds_.until.poll_ms();
    if (bounds_.processor_max.count() > 0) wait_ms = static_cast<int>(kLookAgain.count());
    if (::poll(sources, 2, wait_ms) < 0 && errno != EINTR) return;
    if (sources[0].revents != 0) return;
    if (Overspent()) EndProcess(sandbox::LimitName::kRunnerCpu);
    if (bounds_.until.passed()) EndLate();
    if (PendingEnd()) break;
    if (sources[1].revents != 0 && Readable(signals_.stop.get(), kLookAgain)) return;
  }
  if (!Readable(signals_.stop.get(), kGrace))
    EndProcess(PendingEnd().value_or(EndKind::kTerminated));
}

bool SignalWatch::Overspent() const {
  return bounds_.processor_max.count() > 0 && OwnProcessorTime() > bounds_.processor_max;
}

void SignalWatch::EndLate() {
  report::Finding finding;
  finding.rule = "not-collected";
  finding.severity = report::Severity::kWarning;
  finding.message = "there was no time left to collect what the agent changed";
  record_.Note(std::move(finding));
  EndProcess(bounds_.late);
}

void SignalWatch::EndProcess(EndCause kind) {
  AgentEnd end;
  end.kind = kind;
  if (kind == sandbox::LimitName::kRunnerCpu) record_.NoteRunnerLimit();
  report::OutcomeRecord outcome = DecideOutcome(end, {}, {});
  record_.Note(outcome);
  (void)report::WriteReport(directory_, record_.Finish());
  if (remove_) remove_();
  ::_exit(outcome.exit_code);
}

}  // namespace run
