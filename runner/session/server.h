// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of a sandbox that lasts: takes commands from clients, one at a time, has
// the shell run them, and tells what each ended with and changed. It gathers events and carries out
// actions; what follows from what is decided in steps.h.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "change/layer_watch.h"
#include "codec/data/secret_mask.h"
#include "run/native/native.h"
#include "session/channel.h"
#include "session/git_state.h"
#include "session/helper.h"
#include "session/late_files.h"
#include "session/processes.h"
#include "session/protocol.h"
#include "session/shell.h"
#include "session/steps.h"

namespace session {

struct ServerConfig {
  int listener = -1;  // Borrowed.
  Fd ready;           // Written to when the first command could run; its reader waits.
  std::vector<int> inherited = {};  // Closed by then.
  std::chrono::milliseconds command_timeout{0};
  int64_t output_bytes = 0;  // The bytes of one command's output.
  Deadline expires = Deadline::Never();
  // Keeps the text of a policy that is about to replace the sandbox's.
  std::function<Status(std::string_view text)> keep_policy;
  Fd keeper;  // A pidfd of the process that keeps the sandbox's name: its end ends the sandbox.
};

class Server final : public run::Driver {
 public:
  explicit Server(ServerConfig config);

  void Replace(agent::AgentPlan* plan) override;
  Result<sandbox::AgentInput> OpenInput(const agent::AgentPlan& plan) override;
  // Serves clients until the sandbox is to end. The enclosure is agentic-ci's own.
  Result<run::AgentEnd> Attend(run::Enclosure& enclosure) override;
  const change::Meanwhile* meanwhile() const override { return &meanwhile_; }
  bool applies(bool asked) const override { return !state_.reset && (asked || state_.apply); }
  bool applies_ignored(bool asked) const override { return asked || state_.apply_ignored; }

  // True if it ended to begin anew.
  bool reset() const { return state_.reset; }
  // Returns the descriptor, not valid once a command could be run.
  Fd TakeReady() { return std::move(config_.ready); }
  // Tells every client that is left how it ended, those too that connected meanwhile: those that
  // asked for the end are given `end`, and the others an error that says `why`.
  void Conclude(const Result<EndReport>& end, const std::string& why);

 private:
  struct Client {
    explicit Client(Fd socket) : channel(std::move(socket)) {}
    Channel channel;
    std::string script;
    std::string input;  // What waits for its command's standard input,
    bool input_ends = false;
    bool input_owed = false;        // and whether it is to be told once that is taken.
    std::optional<int64_t> window;  // The bytes of output that it takes; nothing: no limit.
    std::optional<change::LayerWatch> touched;  // Since it asked what changes.
  };
  // A job with what its client sent for it. Kept until its first answer, or until it begins.
  struct Request {
    Job job;
    ExecRequest exec = {};
    std::string script = {};
    TransferRequest transfer = {};
    RestoreRequest restore = {};
    TerminalRequest terminal = {};
    Fd stream = {};
  };
  // A second tree of files, its shell, and the way to that.
  struct Next {
    sandbox::Renewal renewal;
    Fd control;
    Fd script_input;
    Shell shell;
    std::string narrowed_by = {};  // SnapshotFacts::narrowed_by of what is restored.
  };
  // What the command that runs was, wrote and used.
  struct Command {
    explicit Command(const codec::SecretMask& mask) : output(mask), error(mask) {}
    std::string script = {};    // PastCommand::script.
    bool lists_changes = true;  // Whether its result lists the files that changed.
    bool has_input = false;
    Deadline::Clock::time_point started = Deadline::Clock::now();
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
    ScriptEnd end = {};
  };

  sandbox::Sandbox& sandbox() const { return place_->sandbox(); }
  run::Plan& plan() const { return place_->stage().plan; }
  const run::Checkout& checkout() const { return plan().checkout; }
  const run::ReportDirectory& report() const { return place_->stage().directory; }
  const codec::SecretMask& secrets() const { return place_->stage().recorder.secrets(); }
  Status LookAtSandbox();
  void End();
  // Returns the descriptors to wait for; Serve() gets the same ones after the wait.
  std::vector<pollfd> Sources() const;
  void Serve(const pollfd* sources);
  void Take(run::AgentOutput::Pipe pipe, std::string_view bytes);
  // Returns true while the output must not be read, because its receiver is behind.
  bool full() const;
  void Drained();
  bool Absorb(sandbox::LimitName limit);
  // Returns false once no client waits to be accepted.
  bool Accept();
  void TakeMessage(ClientId id, Client& client, std::string_view message, Fd fd);
  bool TakeTransfer(ClientId id, Client& client, std::string_view message, Fd fd);
  void Ask(ClientId client, Request request);
  void Leave(ClientId id);
  void TakeControl(short events);
  void TakeHelp();
  void SendToShell();
  bool TakeInput(Client& client, std::string_view piece);
  // Writes to the standard input of the command that runs what its client sent for it.
  void PassInput();
  void BeginInput();
  // Returns the name by which another end of the pipe is opened.
  static std::string ScriptInput(const Fd& pipe);
  void EndInput();
  // Lets Step() decide what follows from an event, and carries that out. The result of an action is
  // the next event.
  void Do(Event event);
  void Carry(const Action& action);
  void ReportDone(Event::Kind kind, const Action& action, const Status& done);
  // Does nothing if the client has left.
  void Send(ClientId client, std::string message);
  // Sends the answer to a job.
  void Answer(const Action& action, std::string message);
  void ReportReady();
  void SendResult();
  void SendSnapshot(const Action& action);
  // Takes away what appeared in the checkout since and may be a credential: to be called before
  // anything is started inside.
  Status HideLateFiles();
  void NoteWithheld(const std::string& path, const std::string& what);
  Status BeginExec(const Request& request);
  void BeginCommand(const std::string& script, bool input = false);
  void KillBut(std::set<pid_t> spared, bool with_shell);
  void SendPieces(ClientId client, MessageKind kind, std::string_view bytes);
  void Look(const Request& request);
  void SendDiff(ClientId client);
  void SendTouched(Client& client);
  void SendShellStates();
  void Remember(const CommandResult& result);
  void TakePolicy(Client& client, const std::string& shown);
  Result<change::LayerWatch> WatchLayer(change::LayerWatch::Since since) const;
  Result<std::string> Apply();
  Result<change::ChangeSet> Capture() const;
  Result<Helper> StartHelper(Request& request);
  Status StartHelp(Request& request);
  void StopHelp();
  Status MakeNext(Shell shell, std::optional<Next>* next);
  Status PutInPlace(Next next);
  SandboxState Describe() const;
  std::vector<LimitUse> LimitsUsed() const;
  // Returns whether the kernel killed a process for want of memory since the command began.
  bool KilledForMemory() const;
  CommandResult ResultOf(const Command& command);
  change::TouchedFiles LookAfter(const Command& command);

  ServerConfig config_;
  run::NativeEnclosure* place_ = nullptr;  // From Attend() on.
  std::optional<Processes> processes_;
  std::optional<change::LayerWatch> files_;
  Shell shell_;
  std::string key_;
  Fd control_;       // To the shell,
  Fd script_input_;  // The read end of the pipe that is the input of commands,
  Fd to_script_;     // and its write end while a command has input to come.
  std::string to_shell_;
  std::map<ClientId, Client> clients_;
  std::map<JobId, Request> requests_;
  ClientId last_client_ = 0;
  JobId last_job_ = 0;
  State state_;
  std::set<ClientId> awaits_shell_;
  std::vector<PastCommand> history_;
  std::deque<Event> events_;  // The first one is being taken.
  std::optional<Command> command_;
  std::optional<Pause> pause_;  // While a snapshot is taken.
  std::optional<Next> next_;    // While something is restored.
  std::optional<Next> fresh_;   // During a reset.
  std::optional<Helper> helper_;
  change::GivenFiles given_;
  change::Meanwhile
      meanwhile_;  // Changes of the checkout that are not conflicts: `written`, `found`.
  GitState git_;
  LateFiles late_;
  std::set<std::string> noted_;   // What the report has about these files.
  std::set<std::string> hidden_;  // Since the last look at what commands changed.
  int64_t commands_ = 0;
};

}  // namespace session
