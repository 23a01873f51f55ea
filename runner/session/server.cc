// SPDX-License-Identifier: Apache-2.0
#include "session/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/memory.h"
#include "base/sys.h"
#include "base/wire.h"
#include "change/capture.h"
#include "change/given/given_files.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "run/environment.h"
#include "run/prepare.h"
#include "session/change_list.h"
#include "session/keeper.h"
#include "session/place.h"

namespace session {
namespace {

using std::chrono::milliseconds;

constexpr size_t kClientsMax = 64;
constexpr size_t kChunkBytes = 65536;
constexpr milliseconds kFarewell{2000};

int64_t Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<milliseconds>(time).count();
}

// A command of the sandbox's own shell, and so with no more rights than any other; in a session of
// its own, whose terminal is `path`.
std::string TerminalScript(const std::string& kind, const std::string& term,
                           const std::string& path) {
  std::string missing = "agentic-ci: a shell on a terminal needs the program setsid";
  return "if \\command -v setsid >/dev/null; then (TERM=" + codec::ShellWord(term) +
         " \\command setsid -c " + (kind == "bash" ? "bash" : "sh") + " -i 0<>" +
         codec::ShellWord(path) + " 1>&0 2>&0; exit \"$?\"); else \\command printf '%s\\r\\n' " +
         codec::ShellWord(missing) + " >" + codec::ShellWord(path) + "; (exit 127); fi";
}

}  // namespace

Server::Server(ServerConfig config)
    : config_(std::move(config)), shell_(""), key_(sys::RandomHex()) {
  shell_ = Shell(key_);
  state_.command_timeout = config_.command_timeout;
}

void Server::Replace(agent::AgentPlan* plan) {
  plan->argv = KeeperArguments(key_);
  plan->stdin_text.clear();
  plan->stream = "plain";
}

// The pipe has no writer but while a command has input to come: all else reads its end.
Result<sandbox::AgentInput> Server::OpenInput(const agent::AgentPlan& /*plan*/) {
  int raw[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw) != 0) return Errno("socketpair");
  control_ = Fd(raw[0]);
  Fd input(raw[1]);
  if (::fcntl(control_.get(), F_SETFL, O_NONBLOCK) != 0) return Errno("fcntl");
  Fd commands = std::move(TRY(sys::Pipe()).first);
  // A description of its own, so that reading here never waits, and the agent's does.
  script_input_ = TRY(sys::Open(ScriptInput(commands), O_RDONLY | O_NONBLOCK));
  return sandbox::AgentInput(std::move(input), std::move(commands));
}

Result<run::AgentEnd> Server::Attend(run::Enclosure& enclosure) {
  place_ = &static_cast<run::NativeEnclosure&>(enclosure);
  run::Supervisor& supervisor = *TRY(place_->StartAgent(
      {[this](run::AgentOutput::Pipe pipe, std::string_view bytes) { Take(pipe, bytes); },
       [this](sandbox::LimitName limit) { return Absorb(limit); }}));
  sys::ReleaseUnusedMemory();
  TRY(LookAtSandbox());
  while (!supervisor.ended()) {
    std::vector<pollfd> sources = Sources();
    TRY(supervisor.Turn(&sources, Deadline::At(state_.next(Deadline::Clock::now())), !full()));
    Serve(sources.data());
    supervisor.FollowSandbox();
    if (state_.drains()) {
      TRY(supervisor.Drain());
      Drained();
    }
    if (state_.busy()) supervisor.KeepAlive();
    if (state_.lost) {
      supervisor.End(run::EndKind::kExited, SIGKILL);  // As of a process that this signal ended.
    } else if (state_.ended || state_.reset) {
      supervisor.End(run::EndKind::kExited, 0);
    }
  }
  Result<run::AgentEnd> end = place_->Finish();
  End();  // Only now: until nothing of the sandbox is alive, its output is taken.
  return end;
}

Status Server::LookAtSandbox() {
  processes_.emplace(sandbox());
  late_.Forget();
  for (auto& [id, client] : clients_) client.touched.reset();  // They look at the tree before.
  files_.emplace(TRY(WatchLayer(change::LayerWatch::Since::kNow)));
  given_ = change::LookAtCheckout(checkout().path, checkout().git(), sandbox().began());
  meanwhile_.given = &given_;
  return Ok();
}

Result<change::LayerWatch> Server::WatchLayer(change::LayerWatch::Since since) const {
  const sandbox::Sandbox& sandbox = this->sandbox();
  Fd lower = TRY(sys::Open(checkout().path, O_RDONLY | O_DIRECTORY));
  return change::LayerWatch(sandbox.upper(), std::move(lower), sandbox.copied().has_value(), since);
}

void Server::End() {
  control_.Close();
  StopHelp();
  for (auto& [id, client] : clients_) client.touched.reset();
  processes_.reset();
  place_ = nullptr;
}

std::vector<pollfd> Server::Sources() const {
  std::vector<pollfd> sources;
  sources.push_back({clients_.size() < kClientsMax ? config_.listener : -1, POLLIN, 0});
  auto control = static_cast<short>(POLLIN | (to_shell_.empty() ? 0 : POLLOUT));
  sources.push_back({control_.get(), control, 0});
  sources.push_back({helper_ ? helper_->fd() : -1, POLLIN, 0});
  sources.push_back({config_.keeper.get(), POLLIN, 0});
  auto sender = command_ ? clients_.find(state_.command->job.client) : clients_.end();
  const bool waits = sender != clients_.end() && !sender->second.input.empty();
  sources.push_back({waits ? to_script_.get() : -1, POLLOUT, 0});
  for (const auto& [id, client] : clients_) {
    sources.push_back({client.channel.fd(), client.channel.events(), 0});
  }
  return sources;
}

void Server::Serve(const pollfd* sources) {
  if (sources[1].revents != 0) TakeControl(sources[1].revents);
  if (sources[2].revents != 0) TakeHelp();
  if (sources[3].revents != 0) {
    // The signal that the kernel sends at a parent's death (prctl(2), PR_SET_PDEATHSIG) is
    // forgotten when the supervisor takes an agent's user id for a moment, as it does in tier
    // `landlock`.
    config_.keeper.Close();
    (void)::kill(::getpid(), SIGTERM);
  }
  if (sources[4].revents != 0) PassInput();
  const pollfd* source = sources + 5;
  for (auto& [id, client] : clients_) {
    const short events = (source++)->revents;
    std::string message;
    Fd fd;
    if ((events & POLLOUT) != 0) client.channel.Flush();
    if ((events & ~POLLOUT) != 0 && client.channel.Receive(&message, &fd)) {
      TakeMessage(id, client, message, std::move(fd));
    }
  }
  if (sources[0].revents != 0) (void)Accept();
  SendShellStates();
  Do({Event::Kind::kTimer});
  for (auto at = clients_.begin(); at != clients_.end();) {
    auto client = at++;
    if (client->second.channel.closed()) Leave(client->first);
  }
  Do({Event::Kind::kNext});
  SendToShell();
}

void Server::Leave(ClientId id) {
  std::erase_if(requests_, [id](const auto& entry) { return entry.second.job.client == id; });
  awaits_shell_.erase(id);
  Do({Event::Kind::kLeft, id});
  clients_.erase(id);
}

bool Server::Accept() {
  Fd socket(::accept4(config_.listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return false;
  if (SamePeer(socket.get())) clients_.emplace(++last_client_, std::move(socket));
  return true;
}

// Takes one message of a client. A message that is not understood ends the connection.
void Server::TakeMessage(ClientId id, Client& client, std::string_view message, Fd fd) {
  MessageKind kind{};
  std::string piece;
  ExecRequest exec;
  DeleteRequest end;
  int64_t bytes = 0;
  if (wire::Read(message, kind, piece) && kind == MessageKind::kScript) {
    client.script += piece;
    if (client.script.size() > kScriptBytesMax) client.channel.Close();
  } else if (wire::Read(message, kind, piece) && kind == MessageKind::kInput) {
    if (!TakeInput(client, piece)) client.channel.Close();
  } else if (wire::Read(message, kind) && kind == MessageKind::kCancel) {
    client.window.reset();
    Do({Event::Kind::kCancel, id});
  } else if (wire::Read(message, kind, bytes) && kind == MessageKind::kWindow) {
    bytes = std::clamp<int64_t>(bytes, 0, kWindowBytesMax);
    client.window = std::min(client.window.value_or(0) + bytes, kWindowBytesMax);
  } else if (wire::Read(message, kind, exec) && kind == MessageKind::kExec) {
    Ask(id, {.job = {.kind = kind}, .exec = exec, .script = std::exchange(client.script, {})});
  } else if (wire::Read(message, kind, exec) && kind == MessageKind::kDiff) {
    Ask(id, {.job = {.kind = kind}, .exec = exec});
  } else if (wire::Read(message, kind) && kind == MessageKind::kTouched) {
    SendTouched(client);
  } else if (wire::Read(message, kind) && kind == MessageKind::kStatus) {
    Do({Event::Kind::kStatus, id});
  } else if (wire::Read(message, kind) && kind == MessageKind::kReset) {
    Do({.kind = Event::Kind::kReset, .client = id, .flag = sandbox().renewable()});
  } else if (wire::Read(message, kind, end) && kind == MessageKind::kDelete) {
    const Event::Kind deletes = Event::Kind::kDelete;
    Do({.kind = deletes, .client = id, .flag = end.apply, .ignored = end.apply_ignored});
  } else if (!TakeTransfer(id, client, message, std::move(fd))) {
    client.channel.Close();
  }
}

void Server::Ask(ClientId client, Request request) {
  const ExecRequest& exec = request.exec;
  request.job = {++last_job_, client, request.job.kind, exec.waits, milliseconds(exec.timeout_ms)};
  Event event{Event::Kind::kAsked, client, request.job};
  requests_.emplace(last_job_, std::move(request));
  Do(std::move(event));
}

void Server::Do(Event event) {
  events_.push_back(std::move(event));
  if (events_.size() > 1) return;  // The result of an action.
  for (; !events_.empty(); events_.pop_front()) {
    events_.front().shell = {shell_.idle(), shell_.generation(), shell_.begun_shells(),
                             shell_.ready()};
    for (const Action& action : Step(state_, events_.front(), Deadline::Clock::now())) {
      Carry(action);
    }
  }
}

void Server::Carry(const Action& action) {
  auto request = requests_.find(action.job);
  switch (action.kind) {
    case Action::Kind::kFault:
      return Answer(action, wire::Write(MessageKind::kFault, *action.error));
    case Action::Kind::kDone:
      return Answer(action, wire::Write(MessageKind::kDone, action.text));
    case Action::Kind::kSendState:
      return Send(action.client, wire::Write(MessageKind::kState, Describe()));
    case Action::Kind::kSendSnapshot:
      return SendSnapshot(action);
    case Action::Kind::kSendResult:
      return SendResult();
    case Action::Kind::kReportReady:
      return ReportReady();
    case Action::Kind::kClose:
      return clients_.at(action.client).channel.Close();
    case Action::Kind::kLook:
      Look(requests_.extract(request).mapped());
      return Do({Event::Kind::kNext});
    case Action::Kind::kBegin:
      return ReportDone(Event::Kind::kBegun, action,
                        BeginExec(requests_.extract(request).mapped()));
    case Action::Kind::kBeginTerminal:
      return BeginCommand(
          TerminalScript(shell_.kind(), request->second.terminal.term, action.text));
    case Action::Kind::kStartHelper:
      return ReportDone(Event::Kind::kStarted, action, StartHelp(request->second));
    case Action::Kind::kStopHelper:
      return StopHelp();
    case Action::Kind::kOmitPut:
      return (void)files_->Look();
    case Action::Kind::kKill:
      return KillBut(command_->before, false);
    case Action::Kind::kKillWithShell:
      return KillBut(command_->before, true);
    case Action::Kind::kKillShell:
      return KillBut(processes_->List(), true);
    case Action::Kind::kCheckMemory:
      if (KilledForMemory()) Do({Event::Kind::kKilledForMemory});
      return;
    case Action::Kind::kForgiveMemory:
      return sandbox().ForgiveMemory();
    case Action::Kind::kRenew:
      return ReportDone(Event::Kind::kRenewed, action, MakeNext(Shell(key_), &fresh_));
    case Action::Kind::kPutInPlace:
      std::optional<Next>& next = action.job != 0 ? next_ : fresh_;
      return ReportDone(Event::Kind::kPlaced, action, PutInPlace(*std::exchange(next, {})));
  }
}

void Server::ReportDone(Event::Kind kind, const Action& action, const Status& done) {
  Event event{.kind = kind, .client = action.client, .job = {.id = action.job}};
  if (!done.ok()) event.error = done.error();
  Do(std::move(event));
}

void Server::Send(ClientId client, std::string message) {
  auto found = clients_.find(client);
  if (found != clients_.end()) found->second.channel.Send(std::move(message));
}

void Server::Answer(const Action& action, std::string message) {
  requests_.erase(action.job);
  Send(action.client, std::move(message));
}

void Server::TakeControl(short events) {
  if ((events & ~POLLOUT) == 0) return;
  char chunk[kChunkBytes];
  ssize_t n = ::read(control_.get(), chunk, sizeof chunk);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // The sandbox is ending: its supervisor hears of that otherwise.
  if (n <= 0) return control_.Close();
  std::optional<ScriptEnd> end =
      shell_.Take(std::string_view(chunk, static_cast<size_t>(n)), &to_shell_);
  if (end && command_) command_->end = *end;
  Do({.kind = Event::Kind::kShell, .flag = end.has_value()});
}

void Server::SendToShell() {
  while (control_.valid() && !to_shell_.empty()) {
    ssize_t n =
        ::send(control_.get(), to_shell_.data(), to_shell_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    to_shell_.erase(0, static_cast<size_t>(n));
  }
}

void Server::ReportReady() {
  if (!config_.ready.valid()) return;
  CloseInherited(&config_.inherited);
  // Where its creator ended meanwhile, this sandbox has no user.
  bool told = sys::WriteAll(config_.ready.get(), wire::Write(Describe())).ok();
  config_.ready.Close();
  if (!told) Do({Event::Kind::kAbandoned});
}

Status Server::BeginExec(const Request& request) {
  TRY(HideLateFiles());
  BeginCommand(request.script, request.exec.input);
  command_->repeats = agent::RepeatFilter(request.exec.stream);
  command_->lists_changes = request.exec.lists_changes;
  command_->script = codec::CutUtf8(secrets().Mask(request.script), kPastScriptBytesMax);
  return Ok();
}

void Server::BeginCommand(const std::string& script, bool input) {
  command_.emplace(secrets());
  command_->has_input = input;
  if (input) BeginInput();
  command_->before = processes_->List();
  command_->cpu_before = sandbox().cgroup().ProcessorTime();
  command_->kills_before = sandbox().cgroup().OutOfMemoryKills().value_or(0);
  if (git_.IsStale(sandbox())) {
    Pause pause(*processes_);
    // What cannot be followed is left as it is, until the next command.
    Status followed = git_.Follow(sandbox());
    if (!followed.ok()) logging::Warn("git inside is behind", {{"why", followed.error().what}});
  }
  // This is not done after the command before, because its client waited.
  files_->Settle();
  if (!sandbox().copied()) {
    timespec layer{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &layer);  // The clock that stamps files.
    command_->beginning = {layer, sys::FileTime(checkout().path)};
  }
  to_shell_ =
      shell_.Begin(script, input);  // A shell that waits for a script has read all before it.
  ++commands_;
}

void Server::KillBut(std::set<pid_t> spared, bool with_shell) {
  // A command that is not being ended is for the next shell to run, if this one has not begun it.
  if (state_.command && state_.command->reason) shell_.DoNotRepeat();
  const pid_t shell = processes_->shell();
  with_shell ? (void)spared.erase(shell) : (void)spared.insert(shell);
  processes_->KillBut(spared);
}

void Server::Take(run::AgentOutput::Pipe pipe, std::string_view bytes) {
  if (!command_ || state_.command->terminal) return;
  bool output = pipe == run::AgentOutput::Pipe::kOutput;
  if (output) bytes = command_->repeats.Feed(bytes);
  int64_t room = std::max<int64_t>(config_.output_bytes - command_->taken_bytes, 0);
  std::string_view taken = bytes.substr(0, static_cast<size_t>(room));
  command_->taken_bytes += static_cast<int64_t>(taken.size());
  auto lost = static_cast<int64_t>(bytes.size() - taken.size());
  (output ? command_->truncated_output : command_->truncated_error) += lost;
  codec::MaskedStream& masked = output ? command_->output : command_->error;
  SendPieces(state_.command->job.client, output ? MessageKind::kOutput : MessageKind::kError,
             masked.Feed(taken));
  if (lost > 0) Do({Event::Kind::kOutputTooLong});
}

void Server::SendPieces(ClientId client, MessageKind kind, std::string_view bytes) {
  auto found = clients_.find(client);
  if (found != clients_.end() && found->second.window) {
    *found->second.window -= static_cast<int64_t>(bytes.size());
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPieceBytesMax))) {
    Send(client, wire::Write(kind, bytes.substr(0, kPieceBytesMax)));
  }
}

bool Server::full() const {
  auto client = command_ ? clients_.find(state_.command->job.client) : clients_.end();
  return client != clients_.end() &&
         (client->second.channel.full() || client->second.window.value_or(1) <= 0);
}

void Server::Drained() {
  Do({Event::Kind::kDrained});
  SendToShell();
}

void Server::SendResult() {
  EndInput();
  const ClientId client = state_.command->job.client;
  SendPieces(client, MessageKind::kOutput, command_->output.Finish());
  SendPieces(client, MessageKind::kError, command_->error.Finish());
  CommandResult result = ResultOf(*command_);
  Remember(result);
  if (!command_->lists_changes) Send(client, wire::Write(MessageKind::kResult, result));
  const change::TouchedFiles touched = LookAfter(*command_);
  if (command_->lists_changes) {
    result.changes_complete = AddChanges(touched.files, &result.changes) && touched.complete;
    Send(client, wire::Write(MessageKind::kResult, result));
  }
  command_.reset();
  Do({Event::Kind::kTold});
}

bool Server::KilledForMemory() const {
  return sandbox().cgroup().OutOfMemoryKills().value_or(0) > command_->kills_before;
}

CommandResult Server::ResultOf(const Command& command) {
  CommandResult result;
  result.status = command.end.status;
  result.shell_lost = command.end.lost || state_.command->killed_generation;
  result.cwd = shell_.cwd();
  // A shell knows no more than its `$?`.
  const EndReason own = result.status > 128 ? EndReason::kSignal : EndReason::kExit;
  result.reason = state_.command->reason.value_or(own);
  if (KilledForMemory()) {
    result.reason = EndReason::kMemory;
    sandbox().ForgiveMemory();
  }
  result.wall_ms = Milliseconds(Deadline::Clock::now() - command.started);
  std::optional<std::chrono::nanoseconds> cpu = sandbox().cgroup().ProcessorTime();
  if (cpu && command.cpu_before) result.cpu_ms = Milliseconds(*cpu - *command.cpu_before);
  result.memory_peak_bytes = sandbox().cgroup().MemoryPeakBytes().value_or(-1);
  result.truncated_stdout = command.truncated_output;
  result.truncated_stderr = command.truncated_error;
  result.changes_complete = false;
  return result;
}

bool Server::Absorb(sandbox::LimitName limit) {
  if (limit != sandbox::LimitName::kMemory) return false;
  Do({Event::Kind::kMemory});
  return state_.absorbs(Deadline::Clock::now());
}

void Server::Conclude(const Result<EndReport>& end, const std::string& why) {
  Deadline deadline = Deadline::After(kFarewell);
  // After a reset, those that wait to be accepted are the next instance's.
  while (!state_.reset && clients_.size() < kClientsMax && Accept()) {
  }
  for (auto& [id, client] : clients_) {
    std::string message;
    Fd fd;
    MessageKind kind{};
    DeleteRequest request;
    bool awaits_end = state_.awaits_end.contains(id);
    while (!state_.reset && client.channel.Receive(&message, &fd)) {
      bool deletes = wire::Read(message, kind, request) && kind == MessageKind::kDelete;
      awaits_end = awaits_end || deletes;
    }
    if (awaits_end) {
      client.channel.Send(end.ok() ? wire::Write(MessageKind::kEnded, end.value())
                                   : wire::Write(MessageKind::kFault, end.error()));
    } else {
      client.channel.Send(wire::Write(MessageKind::kFault, Error{Code::kIo, why}));
    }
    client.channel.Finish(deadline);
  }
  clients_.clear();
}

}  // namespace session
