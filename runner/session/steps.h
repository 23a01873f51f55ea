// SPDX-License-Identifier: Apache-2.0
// The decisions of a Server, without its effects: Step() takes what happened and says what is to be
// done. It reads no clock, owns no descriptor and starts nothing, so a test can play any order of
// events. A Server keeps what belongs to a job (its script, its descriptor) under the job's number.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "session/protocol.h"

namespace session {

using ClientId = int64_t;  // Counted from 1; 0 for none, or for one that has left.
using JobId = int64_t;     // Likewise.
using TimePoint = Deadline::Clock::time_point;

// What a client asks for and may have to wait for: from kExec to kTerminal.
struct Job {
  JobId id = 0;
  ClientId client = 0;
  MessageKind kind{};
  bool waits = true;                   // Behind other jobs; otherwise it is told "busy".
  std::chrono::milliseconds limit{0};  // Of a command; 0 for the sandbox's own.

  bool operator==(const Job&) const = default;
};

// The shell as it is at an event (Shell).
struct ShellFacts {
  bool idle = false;  // It waits for a script.
  int generation = 0;
  int begun = 0;
  bool ready = false;  // It is there, and has read its state.

  bool operator==(const ShellFacts&) const = default;
};

struct State {
  enum class Stage { kRunning, kEnding, kDraining };
  // The script that the shell runs.
  struct Command {
    Job job;                // Its client is 0 once that has left.
    bool terminal = false;  // A person's shell; jobs with files need not wait for its end.
    Stage stage = Stage::kRunning;
    bool ended = false;                    // The shell said so.
    std::optional<EndReason> reason = {};  // Why it is being ended, if it is.
    TimePoint ends = TimePoint::max();
    TimePoint kills = TimePoint::max();  // The time when its shell is not waited for any more,
    TimePoint lost = TimePoint::max();   // and when the sandbox is given up.
    std::optional<int> killed_generation =
        {};  // The generation of the shell that was killed with it.

    bool operator==(const Command&) const = default;
  };
  // The job that a helper works on.
  struct Help {
    Job job;
    bool restored = false;  // The helper has ended, and the client has not committed yet.
    TimePoint ends;  // A client that neither goes on nor away keeps the others waiting until then.

    bool operator==(const Help&) const = default;
  };
  // The bounds while no shell waits for a script, although none runs, and while one is to run a
  // script that its predecessor did not.
  struct ShellDue {
    TimePoint kill;  // The time when the shell is killed, so that another one follows.
    TimePoint lost;
    int shells = 0;  // Begun so far: each has its own time until it is killed.

    bool operator==(const ShellDue&) const = default;
  };

  std::chrono::milliseconds command_timeout{0};
  ShellFacts shell = {};
  std::deque<Job> jobs = {};  // Those that wait, the oldest first.
  std::optional<Command> command = {};
  std::optional<Help> help = {};
  std::optional<ShellDue> shell_due = {};
  std::set<ClientId> awaits_state = {};
  std::set<ClientId> awaits_end = {};
  bool ready = false;  // A command could run, in this tree of files.
  bool ended = false;  // A client asked for the end, or the creator went away before `ready`.
  bool lost = false;   // The shell did not come back.
  bool reset = false;  // It ends to begin anew.
  bool apply = false;  // The client that asked for the end wants the changes applied,
  bool apply_ignored = false;  // and the files that git ignores, too.

  bool busy() const { return command || help; }
  bool drains() const { return command && command->stage == Stage::kDraining; }
  // Returns whether the command is ended for its memory, so that the sandbox goes on.
  bool absorbs(TimePoint now) const;
  // Returns the time by which a kTimer is due.
  TimePoint next(TimePoint now) const;

  bool operator==(const State&) const = default;
};

struct Event {
  enum class Kind {
    // From a client.
    kAsked,  // For `job`.
    kStatus,
    kCommit,
    kReset,   // `flag`: a second tree can be put in place of the first.
    kDelete,  // `flag`: the changes are applied; `ignored`: and the files that git ignores.
    kCancel,
    kLeft,
    // From the sandbox.
    kShell,   // The shell said something. `flag`: it said that its script has ended.
    kHelped,  // A helper has ended, with `text` or an error.
    kOutputTooLong,
    kMemory,   // The limit was reached.
    kDrained,  // All that the command wrote was read.
    // From the loop.
    kTimer,  // Comes in each turn.
    kNext,   // The turn is over: the next job may begin.
    // Results of actions.
    kAbandoned,        // Of kReportReady: the creator is gone.
    kKilledForMemory,  // Of kCheckMemory.
    kTold,             // Of kSendResult.
    // Likewise, with the action's client and job, and an error if it failed.
    kBegun,
    kStarted,
    kRenewed,
    kPlaced,
  };
  Kind kind;
  ClientId client = 0;
  Job job = {};
  bool flag = false;
  bool ignored = false;
  std::string text = {};
  std::optional<Error> error = {};
  ShellFacts shell = {};  // Set in each event.
};

// One thing to be done. At most one in a list has a result, which is the next event.
struct Action {
  enum class Kind {
    // Messages to `client`.
    kFault,  // `error`.
    kDone,   // `text`.
    kSendState,
    kSendSnapshot,  // `text` is what the helper told.
    kSendResult,    // To the client of the command, unless it has left.
    kReportReady,   // To the creator, once.
    kClose,         // Ends the connection.
    // Jobs.
    kLook,           // Carries out a diff or an apply, and answers it; then kNext.
    kBegin,          // Begins a command.
    kBeginTerminal,  // Begins a shell on the terminal that a helper opened at `text`.
    kStartHelper,
    kStopHelper,  // If it still runs; what it made is dropped.
    kOmitPut,     // No command made the changes that there are by now.
    // What the command left, but not what was there before it.
    kKill,           // All but the shell.
    kKillWithShell,  // The shell too: no further line of its script runs.
    kKillShell,      // Only the shell, while no command runs.
    kCheckMemory,    // Asks whether the kernel killed any of the command's processes.
    kForgiveMemory,
    // Trees of files.
    kRenew,       // Makes a second tree with a shell, for a reset.
    kPutInPlace,  // Puts it in place of the first, or where `job` is set, what that restored.
  };
  Kind kind;
  ClientId client = 0;
  JobId job = 0;
  std::string text = {};
  std::optional<Error> error = {};
};

// Changes `state` by `event`, which happened at `now`, and returns what is to be done, in order.
std::vector<Action> Step(State& state, const Event& event, TimePoint now);

}  // namespace session
