// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of a sandbox that lasts: takes commands from clients, one at a time, has
// the shell run them, and tells what each ended with and changed.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "change/layer_watch.h"
#include "codec/data/secret_mask.h"
#include "run/companion.h"
#include "session/channel.h"
#include "session/git_state.h"
#include "session/helper.h"
#include "session/late_files.h"
#include "session/processes.h"
#include "session/protocol.h"
#include "session/shell.h"

namespace session {

struct ServerConfig {
  int listener = -1;  // Borrowed.
  Fd ready;           // Written to when the first command could run; its reader waits.
  std::vector<int> inherited = {};  // Closed by then.
  std::chrono::milliseconds command_timeout{0};
  int64_t output_bytes = 0;  // The bytes of one command's output.
  Deadline expires = Deadline::Never();
  Fd keeper;  // A pidfd of the process that keeps the sandbox's name: its end ends the sandbox.
};

class Server final : public run::Companion {
 public:
  explicit Server(ServerConfig config);

  void Replace(agent::AgentPlan* plan) override;
  Result<Fd> OpenInput() override;
  Status Begin(const Stage& stage) override;
  void End() override;
  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  Deadline next() const override;
  void Take(run::AgentOutput::Pipe pipe, std::string_view bytes) override;
  bool full() const override;
  bool drains() const override { return phase_ == Phase::kDraining; }
  void Drained() override;
  bool Absorb(sandbox::LimitName limit) override;
  bool busy() const override { return phase_ != Phase::kIdle; }
  std::optional<int> ends() const override;
  const change::Meanwhile& meanwhile() const override { return meanwhile_; }
  bool applies(bool asked) const override { return !reset_ && (asked || apply_); }

  // True if it ended to begin anew.
  bool reset() const { return reset_; }
  // Returns the descriptor, not valid once a command could be run.
  Fd TakeReady() { return std::move(config_.ready); }
  // Tells every client that is left how it ended, those too that connected meanwhile: those that
  // asked for the end are given `end`, and the others an error that says `why`.
  void Conclude(const Result<EndReport>& end, const std::string& why);

 private:
  enum class Phase {
    kIdle,
    kRunning,  // A command,
    kEnding,
    kDraining,
    kHelping,   // or a Helper.
    kRestored,  // The client says whether what was restored is put in place.
  };
  struct Client {
    explicit Client(Fd socket) : channel(std::move(socket)) {}
    Channel channel;
    std::string script;
    std::optional<change::LayerWatch> touched;  // Since it asked what changes.
    bool awaits_state = false;
    bool awaits_end = false;
  };
  struct Job {
    Client* client;  // Null if it went away.
    MessageKind kind;
    ExecRequest exec = {};
    std::string script = {};
    TransferRequest transfer = {};
    RestoreRequest restore = {};
    TerminalRequest terminal = {};
    Fd stream = {};
  };
  // The work that a Helper is doing.
  struct Help {
    Client* client;  // Null if it went away.
    MessageKind kind;
    Helper helper;
    RestoreRequest restore;
    std::string state;  // The state of the shell, to be restored.
    TerminalRequest terminal;
    Deadline ends;  // A client that neither goes on nor away keeps the others waiting until then.
  };
  // A second tree of files, and the way to its shell.
  struct Next {
    sandbox::Renewal renewal;
    Fd control;
  };
  struct Command {
    explicit Command(const codec::SecretMask& mask) : output(mask), error(mask) {}
    Client* client = nullptr;
    bool terminal = false;      // A person's shell; what works with files meanwhile need not wait.
    bool lists_changes = true;  // Whether its result lists the files that changed.
    std::optional<EndReason> reason;  // Why it is being ended, if it is.
    Deadline::Clock::time_point started = Deadline::Clock::now();
    Deadline ends = Deadline::Never();   // Its time limit,
    Deadline kills = Deadline::Never();  // and when its shell is not waited for any more.
    Deadline lost = Deadline::Never();
    std::optional<change::Beginning> beginning;  // Set where the tree is a layer, not a copy.
    std::set<pid_t> before;
    std::optional<std::chrono::nanoseconds> cpu_before;
    int64_t kills_before = 0;  // By the kernel, for want of memory.
    agent::RepeatFilter repeats;
    codec::MaskedStream output;
    codec::MaskedStream error;
    int64_t taken_bytes = 0;
    int64_t truncated_output = 0;
    int64_t truncated_error = 0;
    std::optional<ScriptEnd> end;
    std::optional<int> killed_generation;  // The generation of the shell that was killed with it.
  };

  Status LookAtSandbox();
  // Returns false once no client waits to be accepted.
  bool Accept();
  void ReadClient(Client& client);
  void TakeMessage(Client& client, std::string_view message, Fd fd);
  bool TakeTransfer(Client& client, std::string_view message, Fd fd);
  void Enqueue(Client& client, Job job);
  void Leave(Client& client);
  void TakeControl(short events);
  void TellShell();
  void TellReady();
  void Advance();
  void AwaitShell();
  void StartNext();
  // Takes away what appeared in the checkout since and may be a credential: to be called before
  // anything is started inside.
  Status HideLateFiles();
  std::optional<Job> TakeNextJob();
  void BeginCommand(Client* client, const std::string& script, Deadline ends);
  void BeginTerminal(Client& client, const TerminalRequest& request, const std::string& path);
  bool HasEnded() const;
  void DrainIfEnded();
  void EndCommand(EndReason reason);
  void KillCommand();
  void SendPieces(MessageKind kind, std::string_view bytes);
  void SendDiff(Client& client);
  void SendTouched(Client& client);
  Result<change::LayerWatch> WatchLayer(change::LayerWatch::Since since) const;
  void Apply(Client& client);
  Result<change::ChangeSet> Capture() const;
  Status StartHelp(Job job);
  Result<Helper> StartHelper(Job& job);
  void TakeHelp();
  void TellSnapshot(Client& client, const std::string& sent);
  // Tells its client why, if anything.
  void StopHelping(const std::optional<Error>& why = std::nullopt);
  Result<Next> MakeNext();
  Status PutInPlace(Next next, Shell shell, const std::string& why);
  void ResetInPlace(Client& client);
  void Commit(Client& client);
  SandboxState State() const;
  std::vector<LimitUse> LimitsUsed() const;
  // Returns whether the kernel killed a process for want of memory since it began.
  bool KilledForMemory(const Command& command) const;
  CommandResult ResultOf(const Command& command);
  change::TouchedFiles LookAfter(const Command& command);

  ServerConfig config_;
  std::optional<Stage> stage_;
  std::optional<Processes> processes_;
  std::optional<change::LayerWatch> files_;
  Shell shell_;
  std::string key_;
  Fd control_;  // To the shell,
  Fd input_;    // and its end until the agent has it.
  std::string to_shell_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<Job> jobs_;
  Phase phase_ = Phase::kIdle;
  std::optional<Command> command_;
  std::optional<Help> help_;
  std::optional<Pause> pause_;  // While a snapshot is taken.
  std::optional<Next> next_;    // While something is restored.
  // The bounds while no shell waits for a script, although none runs.
  struct ShellDue {
    Deadline kill;  // When the shell is killed, so that another one follows.
    Deadline lost;
    int shells = 0;  // Begun so far: each has its own time until it is killed.
    bool killed = false;
  };
  std::optional<ShellDue> shell_due_;
  change::GivenFiles given_;
  change::Meanwhile
      meanwhile_;  // Changes of the checkout that are not conflicts: `written`, `found`.
  GitState git_;
  LateFiles late_;
  std::set<std::string> hidden_;  // Since the last look at what commands changed.
  int64_t commands_ = 0;
  bool was_ready_ = false;
  bool deleted_ = false;
  bool lost_ = false;  // True if its shell did not come back.
  bool reset_ = false;
  bool apply_ = false;
  bool abandoned_ = false;  // Its maker went away before it was ready.
};

}  // namespace session
