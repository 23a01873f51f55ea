// SPDX-License-Identifier: Apache-2.0
#include "session/steps.h"

#include <algorithm>

namespace session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kKillInterval{5};
constexpr milliseconds kNextShellGrace{2000};  // Its successor is being started.
constexpr milliseconds kLostAfter{10'000};
// The time within which a shell has to be ready, between two commands; and within which one of its
// successors: three with its state, and one without.
constexpr milliseconds kShellPatience{10'000};
constexpr milliseconds kShellLostAfter{60'000};

// One step: what is decided so far.
class Stepper {
 public:
  Stepper(State& state, TimePoint now) : state_(state), now_(now) {}

  void Take(const Event& event);
  std::vector<Action> TakeActions() { return std::move(actions_); }

 private:
  using Kind = Action::Kind;
  using Stage = State::Stage;

  void TakeResult(const Event& event);
  void Do(Action action) { actions_.push_back(std::move(action)); }
  void Fault(const Job& job, Error error);
  void Enqueue(const Job& job);
  void ReportReady();
  void Cancel(ClientId client);
  void Leave(ClientId client);
  void Advance();
  void AwaitShell();
  void StartNext();
  bool Runs() const;
  void DrainIfEnded();
  void EndCommand(EndReason reason);
  void Kill();
  void StopHelping();
  void StopHelping(Error why);
  void TakeHelp(const Event& event);
  void Commit(ClientId client);
  void Replace(ClientId client, JobId job, const Error& why);

  State& state_;
  const TimePoint now_;
  std::vector<Action> actions_;
};

void Stepper::Take(const Event& event) {
  state_.shell = event.shell;
  switch (event.kind) {
    case Event::Kind::kAsked:
      return Enqueue(event.job);
    case Event::Kind::kStatus:
      state_.awaits_state.insert(event.client);
      return ReportReady();
    case Event::Kind::kCommit:
      return Commit(event.client);
    case Event::Kind::kReset:
      if (event.flag) return Do({Kind::kRenew, event.client});
      state_.reset = true;
      state_.awaits_end.insert(event.client);
      return;
    case Event::Kind::kDelete:
      state_.ended = true;
      state_.apply = state_.apply || event.flag;
      state_.apply_ignored = state_.apply_ignored || event.ignored;
      state_.awaits_end.insert(event.client);
      return;
    case Event::Kind::kCancel:
      return Cancel(event.client);
    case Event::Kind::kLeft:
      return Leave(event.client);
    case Event::Kind::kShell:
      if (state_.command && event.flag) state_.command->ended = true;
      return ReportReady();
    case Event::Kind::kHelped:
      return TakeHelp(event);
    case Event::Kind::kOutputTooLong:
      if (Runs()) EndCommand(EndReason::kOutput);
      return;
    case Event::Kind::kMemory:
      if (!state_.command) return;
      StopHelping({Code::kTemporary, "the memory limit ended what runs meanwhile"});
      if (!Runs()) return;
      EndCommand(EndReason::kMemory);
      return Do({Kind::kForgiveMemory});
    case Event::Kind::kDrained:
      return Do({Kind::kSendResult});
    case Event::Kind::kTimer:
      return Advance();
    case Event::Kind::kNext:
      return StartNext();
    default:
      return TakeResult(event);
  }
}

void Stepper::TakeResult(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kKilledForMemory:
      // The kernel ended the command before its supervisor could.
      state_.command->reason = EndReason::kMemory;
      return Kill();
    case Event::Kind::kTold:
      state_.command.reset();
      return StartNext();
    case Event::Kind::kBegun:
      if (!event.error) return;
      Fault(std::exchange(state_.command, {})->job, *event.error);
      return StartNext();
    case Event::Kind::kStarted:
      if (!event.error) return;
      StopHelping(*event.error);
      return StartNext();
    case Event::Kind::kRenewed:
      if (event.error) return Fault({event.job.id, event.client}, *event.error);
      return Replace(event.client, 0, {Code::kIo, "the sandbox was reset"});
    case Event::Kind::kPlaced:
      if (event.error) return Fault({event.job.id, event.client}, *event.error);
      if (event.job.id != 0) return (void)state_.awaits_state.insert(event.client);
      // The next command waits for the shell, which begins meanwhile.
      return Do({Kind::kSendState, event.client});
    default:
      state_.ended = true;  // kAbandoned.
  }
}

void Stepper::Fault(const Job& job, Error error) {
  if (job.client != 0) Do({Kind::kFault, job.client, job.id, {}, std::move(error)});
}

void Stepper::Enqueue(const Job& job) {
  bool free = !state_.busy() && state_.jobs.empty();
  if (free || job.waits) return state_.jobs.push_back(job);
  Fault(job, {Code::kTemporary, "busy: another command is running in this sandbox"});
}

void Stepper::ReportReady() {
  if (!state_.ready && !state_.shell.idle) return;
  if (!std::exchange(state_.ready, true)) Do({Kind::kReportReady});
  for (ClientId client : std::exchange(state_.awaits_state, {})) Do({Kind::kSendState, client});
}

// Ends what the client waits for, and its command: that one's result says so.
void Stepper::Cancel(ClientId client) {
  for (const Job& job : state_.jobs) {
    if (job.client == client) Fault(job, {Code::kIo, "the command was cancelled before it began"});
  }
  std::erase_if(state_.jobs, [&](const Job& job) { return job.client == client; });
  if (Runs() && state_.command->job.client == client) EndCommand(EndReason::kCancelled);
}

// A client that goes away takes its command with it.
void Stepper::Leave(ClientId client) {
  std::erase_if(state_.jobs, [&](const Job& job) { return job.client == client; });
  state_.awaits_state.erase(client);
  state_.awaits_end.erase(client);
  if (state_.help && state_.help->job.client == client) StopHelping();
  if (!state_.command || state_.command->job.client != client) return;
  state_.command->job.client = 0;
  if (Runs()) EndCommand(EndReason::kCancelled);
}

// Does what is due by now.
void Stepper::Advance() {
  if (state_.help && now_ >= state_.help->ends) {
    StopHelping({Code::kTemporary, "the sandbox's time limit for one command passed"});
  }
  AwaitShell();
  if (!state_.command) return;
  DrainIfEnded();
  if (state_.command->stage == Stage::kEnding) {
    Kill();
    if (now_ >= state_.command->lost) state_.lost = true;  // Not even its shell's end came.
  } else if (Runs() && now_ >= state_.command->ends) {
    EndCommand(EndReason::kTimeout);
  }
}

// Bounds the time in which no command can run: a shell that is stopped, or of which something else
// said that it had ended, would keep all commands waiting, and one that hangs at its beginning the
// command that its predecessor was to run.
void Stepper::AwaitShell() {
  std::optional<State::ShellDue>& due = state_.shell_due;
  const bool waits = state_.busy() ? Runs() && !state_.shell.ready : !state_.shell.idle;
  if (!waits) return due.reset();
  if (!due || due->shells != state_.shell.begun) {
    due = {now_ + kShellPatience, due ? due->lost : now_ + kShellLostAfter, state_.shell.begun};
  }
  if (now_ >= due->lost) state_.lost = true;
  if (now_ < due->kill) return;
  due->kill = TimePoint::max();
  Do({Kind::kKillShell});
}

// Beside a terminal, what works with files does not wait for its end.
void Stepper::StartNext() {
  auto next = state_.jobs.begin();
  if (Runs() && state_.command->terminal) {
    next = std::find_if(state_.jobs.begin(), state_.jobs.end(),
                        [](const Job& job) { return job.kind != MessageKind::kExec; });
  } else if (state_.busy() || !state_.shell.idle) {
    return;
  }
  if (next == state_.jobs.end()) return;
  const Job job = *next;
  state_.jobs.erase(next);
  if (job.kind == MessageKind::kDiff || job.kind == MessageKind::kApply) {
    Do({Kind::kLook, job.client, job.id});
  } else if (job.kind == MessageKind::kExec) {
    auto limit = job.limit > milliseconds(0) ? job.limit : state_.command_timeout;
    state_.command = {.job = job, .ends = now_ + limit};
    Do({Kind::kBegin, job.client, job.id});
  } else {
    state_.help = {.job = job, .ends = now_ + state_.command_timeout};
    Do({Kind::kStartHelper, job.client, job.id});
  }
}

// While a helper works beside a terminal, nothing ends that.
bool Stepper::Runs() const {
  return state_.command && !state_.help && state_.command->stage == Stage::kRunning;
}

// A shell that is killed may have told the end just before: the next command waits for the next
// shell all the same.
void Stepper::DrainIfEnded() {
  State::Command& command = *state_.command;
  if (!command.ended || state_.help || command.stage == Stage::kDraining ||
      command.killed_generation == state_.shell.generation) {
    return;
  }
  command.stage = Stage::kDraining;
  command.reason ? Kill() : Do({Kind::kCheckMemory});
}

void Stepper::EndCommand(EndReason reason) {
  state_.command->reason = reason;
  state_.command->kills = now_;
  state_.command->lost = now_ + kLostAfter;
  state_.command->stage = Stage::kEnding;
  Kill();
}

// The shell is killed with the rest: it would go on with the next line of its script.
void Stepper::Kill() {
  State::Command& command = *state_.command;
  if (command.ended || now_ < command.kills) return Do({Kind::kKill});
  command.killed_generation = state_.shell.generation;
  command.kills = now_ + kNextShellGrace;
  Do({Kind::kKillWithShell});
}

void Stepper::StopHelping() {
  if (!std::exchange(state_.help, {})) return;
  Do({Kind::kStopHelper});
  if (!state_.command) return;
  DrainIfEnded();
  if (Runs() && state_.command->job.client == 0) EndCommand(EndReason::kCancelled);
}

void Stepper::StopHelping(Error why) {
  if (state_.help) Fault(state_.help->job, std::move(why));
  StopHelping();
}

void Stepper::TakeHelp(const Event& event) {
  const Job job = state_.help->job;
  if (job.kind == MessageKind::kRestore && !event.error) {
    state_.help->restored = true;
    return Do({Kind::kDone, job.client, job.id, event.text});
  }
  if (event.error) return StopHelping(*event.error);
  StopHelping();
  if (job.kind == MessageKind::kSnapshot) {
    return Do({Kind::kSendSnapshot, job.client, job.id, event.text});
  }
  if (job.kind == MessageKind::kTerminal) {
    Error error{Code::kTemporary, "the sandbox's shell has just ended, and the next one starts"};
    if (!state_.shell.idle) return Fault(job, std::move(error));
    state_.command = {.job = job, .terminal = true};
    Do({Kind::kBeginTerminal, job.client, job.id, event.text});
  } else if (job.kind == MessageKind::kPut) {
    Do({Kind::kOmitPut});
  }
  Do({Kind::kDone, job.client, job.id, event.text});
}

void Stepper::Commit(ClientId client) {
  if (!state_.help || !state_.help->restored || state_.help->job.client != client) {
    return Do({Kind::kClose, client});
  }
  Replace(client, state_.help->job.id, {Code::kIo, "the sandbox was restored"});
}

// Puts another tree of files in place, in which nothing runs: the one that `job` restored, if any.
void Stepper::Replace(ClientId client, JobId job, const Error& why) {
  if (state_.help && job == 0) {
    Fault(state_.help->job, why);
    Do({Kind::kStopHelper});
  }
  if (state_.command) Fault(state_.command->job, why);
  state_.help.reset();
  state_.command.reset();
  state_.shell_due.reset();
  state_.ready = false;
  Do({Kind::kPutInPlace, client, job});
}

}  // namespace

bool State::absorbs(TimePoint now) const {
  return command && command->reason == EndReason::kMemory && now < command->lost;
}

TimePoint State::next(TimePoint now) const {
  if (help) return help->ends;
  const TimePoint due = shell_due ? std::min(shell_due->kill, shell_due->lost) : TimePoint::max();
  if (!command) return due;
  if (command->stage != Stage::kEnding) return std::min(due, command->ends);
  // Once its end was told, its shell is not killed any more.
  return std::min(command->ended ? TimePoint::max() : command->kills, now + kKillInterval);
}

std::vector<Action> Step(State& state, const Event& event, TimePoint now) {
  Stepper stepper(state, now);
  stepper.Take(event);
  return stepper.TakeActions();
}

}  // namespace session
