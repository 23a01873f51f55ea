// SPDX-License-Identifier: Apache-2.0
// The part of a Server that waits for a shell between two commands.
#include "session/server.h"

namespace session {
namespace {

using std::chrono::milliseconds;

// The time within which a shell has to be ready, between two commands; and within which one of its
// successors: three with its state, and one without.
constexpr milliseconds kShellPatience{10'000};
constexpr milliseconds kShellLostAfter{60'000};

}  // namespace

// Bounds the time in which no command can run: a shell that is stopped, or of which something else
// said that it had ended, would keep all commands waiting, and one that hangs at its beginning the
// command that its predecessor was to run.
void Server::AwaitShell() {
  const bool waits =
      (phase_ == Phase::kIdle && !shell_.idle()) || (phase_ == Phase::kRunning && !shell_.ready());
  if (!stage_ || !waits) return shell_due_.reset();
  if (!shell_due_) {
    shell_due_ = {Deadline::After(kShellPatience), Deadline::After(kShellLostAfter),
                  shell_.begun_shells()};
  }
  if (shell_due_->shells != shell_.begun_shells()) {
    shell_due_->shells = shell_.begun_shells();
    shell_due_->kill = Deadline::After(kShellPatience);
    shell_due_->killed = false;
  }
  if (shell_due_->lost.passed()) lost_ = true;
  if (shell_due_->killed || !shell_due_->kill.passed()) return;
  shell_due_->killed = true;
  std::set<pid_t> spared = processes_->List();
  spared.erase(processes_->shell());
  processes_->KillBut(spared);
}

}  // namespace session
