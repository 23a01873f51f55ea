// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/lasting.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "backend/openshell/keeper.h"
#include "backend/openshell/proposals.h"
#include "backend/openshell/sandbox.h"
#include "backend/openshell/state_directory.h"
#include "base/sys.h"
#include "codec/data/secret_mask.h"
#include "run/signals.h"

namespace openshell {
namespace {

using session::CommandResult;
using session::EndReason;

constexpr std::chrono::seconds kResultTime{10};

// One command at a time; the lock ends with the process.
Result<Fd> TakeTurn(const std::string& state, bool waits) {
  Fd lock = TRY(sys::Open(state + kCommandLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  while (::flock(lock.get(), waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error{Code::kTemporary, "another command is running"};
    if (errno != EINTR) return Errno("flock");
  }
  return lock;
}

// Holds back SIGINT and SIGTERM while it lives: without it, the command would go on in its sandbox.
class HeldSignals {
 public:
  HeldSignals() { (void)::sigprocmask(SIG_BLOCK, nullptr, &before_); }
  ~HeldSignals() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  Status Hold() {
    signals_ = TRY(run::CatchSignals());
    return Ok();
  }
  int descriptor() const { return signals_.caught.get(); }

 private:
  sigset_t before_{};
  run::Signals signals_;
};

// A command's output, passed on until it ends or a limit does.
class Passing {
 public:
  Passing(Child& child, int signals, const CommandLimits& limits, int64_t timeout_ms,
          const session::Sink& sink)
      : child_(child),
        signals_(signals),
        output_left_(limits.output_bytes),
        ends_(Deadline::After(
            std::chrono::milliseconds(timeout_ms > 0 ? timeout_ms : limits.timeout_s * 1000))),
        sink_(sink) {}

  // "exit", or why it was not waited for any more.
  Result<EndReason> Watch() {
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
      pollfd pipes[] = {{open[0] ? child_.output().get() : -1, POLLIN, 0},
                        {open[1] ? child_.error().get() : -1, POLLIN, 0},
                        {signals_, POLLIN, 0}};
      if (::poll(pipes, std::size(pipes), ends_.poll_ms()) < 0 && errno != EINTR) {
        return Errno("poll");
      }
      if (run::PendingEnd()) return EndReason::kCancelled;
      if (ends_.passed()) return EndReason::kTimeout;
      for (int i = 0; i < 2; ++i) {
        if (pipes[i].revents != 0) open[i] = TRY(Pass(pipes[i].fd, i == 1));
      }
      if (output_left_ < 0) return EndReason::kOutput;
    }
    // A terminal gives its signal to OpenShell's command line too, which then ends.
    return run::PendingEnd() ? EndReason::kCancelled : EndReason::kExit;
  }

 private:
  Result<bool> Pass(int fd, bool error) {
    char piece[65536];
    ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) return true;
    if (got < 0) return Errno("reading the command's output");
    if (got == 0) return false;
    const auto shown =
        static_cast<size_t>(std::min<int64_t>(got, std::max<int64_t>(output_left_, 0)));
    output_left_ -= got;
    TRY(sink_(error, std::string_view(piece, shown)));
    return true;
  }

  Child& child_;
  int signals_;  // Readable when this process is asked to end.
  int64_t output_left_;
  Deadline ends_;
  const session::Sink& sink_;
};

// Tells proposals for what was refused so far. Where the gateway cannot say, the report will.
void LogProposals(const Sandbox& sandbox, const std::string& invocation) {
  Result<std::vector<Proposal>> proposals = sandbox.Proposals();
  if (!proposals.ok()) return;
  for (const Proposal& proposal : proposals.value()) {
    if (proposal.status == "pending") LogProposal(invocation, sandbox.name(), proposal);
  }
}

// Fails if the command of the process `pid` did not end by itself. A sandbox that was stopped
// is started again. A failure of OpenShell's own looks like one of the command.
Status CheckEnd(const Sandbox& sandbox, pid_t pid, int status) {
  const std::string why = sandbox.client().WhyBroken(pid);
  if (status == 0 && why.empty()) return Ok();
  Result<bool> ready = sandbox.IsReady();
  if (ready.ok() && !ready.value()) {
    if (!TRY(sandbox.Restart().Context("starting the sandbox again"))) {
      return Error{Code::kIo, "the sandbox ended"};
    }
    return Error{Code::kTemporary,
                 "the sandbox was stopped, and is started again: what ran in it has ended",
                 "the same command again"};
  }
  if (!why.empty()) return Error{Code::kTemporary, "the command broke off: " + why};
  TRY(std::move(ready).Context("asking for the sandbox"));
  return Ok();
}

}  // namespace

Result<CommandResult> Exec(const session::Place& place, const std::string& name,
                           std::string_view script, const session::ExecRequest& request,
                           const session::Sink& sink) {
  session::Facts facts = TRY(place.Find(name));
  if (facts.state.empty()) return Error{Code::kTemporary, "the sandbox is being started"};
  CommandLimits limits = TRY(ReadLimits(facts.state));
  Fd turn = TRY(TakeTurn(facts.state, request.waits));
  const Sandbox sandbox = SandboxAt(facts.state, facts.workdir);
  const auto began = Deadline::Clock::now();
  std::string whole = TRY(ReadEnvironment(facts.state));
  HeldSignals held;
  TRY(held.Hold());
  Child child = TRY(sandbox.Exec(whole.append(script)));
  CommandResult result;
  Result<EndReason> reason =
      Passing(child, held.descriptor(), limits, request.timeout_ms, sink).Watch();
  if (!reason.ok()) {
    sandbox.EndProcesses();
    return std::move(reason).error();
  }
  result.reason = reason.value();
  if (result.reason == EndReason::kExit) {
    const pid_t pid = child.pid();
    result.status = TRY(child.Wait(Deadline::After(kResultTime)));
    TRY(CheckEnd(sandbox, pid, result.status));
  } else {
    sandbox.EndProcesses();
  }
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  result.wall_ms = duration_cast<milliseconds>(Deadline::Clock::now() - began).count();
  result.shell_lost = true;
  result.cwd = kWorkspace;
  result.changes_complete = false;
  if (!limits.invocation.empty()) LogProposals(sandbox, limits.invocation);
  return result;
}

void Sweep() { SweepRemains({sys::Environment("PATH").value_or(""), ""}); }

}  // namespace openshell
