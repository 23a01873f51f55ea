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
// The time that a shell may take to say that its killed command has ended; then it is killed too.
constexpr milliseconds kShellGrace{60};
constexpr milliseconds kKillInterval{5};
constexpr milliseconds kNextShellGrace{2000};  // Its successor is being started.
constexpr milliseconds kLostAfter{10'000};
constexpr milliseconds kFarewell{2000};

Error Busy() { return {Code::kTemporary, "busy: another command is running in this sandbox"}; }

int64_t Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<milliseconds>(time).count();
}

}  // namespace

Server::Server(ServerConfig config)
    : config_(std::move(config)), shell_(""), key_(sys::RandomHex()) {
  shell_ = Shell(key_);
}

void Server::Replace(agent::AgentPlan* plan) {
  plan->argv = KeeperArguments(key_);
  plan->stdin_text.clear();
  plan->stream = "plain";
}

Result<Fd> Server::OpenInput() {
  int raw[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw) != 0) return Errno("socketpair");
  control_ = Fd(raw[0]);
  input_ = Fd(raw[1]);
  if (::fcntl(control_.get(), F_SETFL, O_NONBLOCK) != 0) return Errno("fcntl");
  return std::move(input_);
}

Status Server::Begin(const Stage& stage) {
  stage_.emplace(stage);
  sys::ReleaseUnusedMemory();
  return LookAtSandbox();
}

Status Server::LookAtSandbox() {
  processes_.emplace(stage_->sandbox);
  late_.Forget();
  for (const auto& client : clients_) client->touched.reset();  // They look at the tree before.
  files_.emplace(TRY(WatchLayer(change::LayerWatch::Since::kNow)));
  given_ = change::LookAtCheckout(stage_->checkout.path, stage_->checkout.git(),
                                  stage_->sandbox.began());
  meanwhile_.given = &given_;
  return Ok();
}

Result<change::LayerWatch> Server::WatchLayer(change::LayerWatch::Since since) const {
  const sandbox::Sandbox& sandbox = stage_->sandbox;
  Fd lower = TRY(sys::Open(stage_->checkout.path, O_RDONLY | O_DIRECTORY));
  return change::LayerWatch(sandbox.upper(), std::move(lower), sandbox.copied().has_value(), since);
}

void Server::End() {
  control_.Close();
  StopHelping();
  for (const auto& client : clients_) client->touched.reset();
  processes_.reset();
  stage_.reset();
}

void Server::AddSources(std::vector<pollfd>* sources) const {
  sources->push_back({clients_.size() < kClientsMax ? config_.listener : -1, POLLIN, 0});
  auto control = static_cast<short>(POLLIN | (to_shell_.empty() ? 0 : POLLOUT));
  sources->push_back({control_.get(), control, 0});
  sources->push_back({help_ ? help_->helper.fd() : -1, POLLIN, 0});
  sources->push_back({config_.keeper.get(), POLLIN, 0});
  for (const auto& client : clients_) {
    sources->push_back({client->channel.fd(), client->channel.events(), 0});
  }
}

std::optional<int> Server::ends() const {
  if (lost_) return SIGKILL;  // As of a process that this signal ended.
  return deleted_ || reset_ || abandoned_ ? std::optional(0) : std::nullopt;
}

Deadline Server::next() const {
  if (help_) return help_->ends;
  Deadline shell = Deadline::Never();
  if (shell_due_) shell = shell_due_->killed ? shell_due_->lost : shell_due_->kill;
  if (!command_) return shell;
  if (phase_ == Phase::kEnding) return std::min(command_->kills, Deadline::After(kKillInterval));
  return std::min(shell, command_->ends);
}

void Server::Serve(const pollfd* sources) {
  constexpr size_t kFixed = 4;
  if (sources[1].revents != 0) TakeControl(sources[1].revents);
  if (sources[2].revents != 0) TakeHelp();
  if (sources[3].revents != 0) {
    // The signal that the kernel sends at a parent's death (prctl(2), PR_SET_PDEATHSIG) is
    // forgotten when the supervisor takes an agent's user id for a moment, as it does in tier
    // `landlock`.
    config_.keeper.Close();
    (void)::kill(::getpid(), SIGTERM);
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    if ((sources[kFixed + i].revents & POLLOUT) != 0) clients_[i]->channel.Flush();
    if ((sources[kFixed + i].revents & ~POLLOUT) != 0) ReadClient(*clients_[i]);
  }
  if (sources[0].revents != 0) (void)Accept();
  Advance();
  for (const auto& client : clients_) {
    if (client->channel.closed()) Leave(*client);
  }
  std::erase_if(clients_, [](const auto& client) { return client->channel.closed(); });
  StartNext();
  TellShell();
}

bool Server::Accept() {
  Fd socket(::accept4(config_.listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return false;
  if (SamePeer(socket.get())) clients_.push_back(std::make_unique<Client>(std::move(socket)));
  return true;
}

void Server::ReadClient(Client& client) {
  std::string message;
  Fd fd;
  if (client.channel.Receive(&message, &fd)) TakeMessage(client, message, std::move(fd));
}

// Takes one message of a client. A message that is not understood ends the connection.
void Server::TakeMessage(Client& client, std::string_view message, Fd fd) {
  MessageKind kind{};
  std::string piece;
  ExecRequest exec;
  DeleteRequest end;
  if (wire::Read(message, kind, piece) && kind == MessageKind::kScript) {
    client.script += piece;
    if (client.script.size() > kScriptBytesMax) client.channel.Close();
  } else if (wire::Read(message, kind, exec) && kind == MessageKind::kExec) {
    Enqueue(client, {&client, kind, exec, std::exchange(client.script, {})});
  } else if (wire::Read(message, kind, exec) && kind == MessageKind::kDiff) {
    Enqueue(client, {&client, kind, exec});
  } else if (wire::Read(message, kind) && kind == MessageKind::kTouched) {
    SendTouched(client);
  } else if (wire::Read(message, kind) && kind == MessageKind::kStatus) {
    client.awaits_state = true;
    TellReady();
  } else if (wire::Read(message, kind) && kind == MessageKind::kReset) {
    ResetInPlace(client);
  } else if (wire::Read(message, kind, end) && kind == MessageKind::kDelete) {
    deleted_ = true;
    apply_ = apply_ || end.apply;
    client.awaits_end = true;
  } else if (!TakeTransfer(client, message, std::move(fd))) {
    client.channel.Close();
  }
}

void Server::Enqueue(Client& client, Job job) {
  bool free = phase_ == Phase::kIdle && jobs_.empty();
  if (!free && !job.exec.waits) {
    return client.channel.Send(wire::Write(MessageKind::kFault, Busy()));
  }
  jobs_.push_back(std::move(job));
}

// A client that goes away takes its command with it.
void Server::Leave(Client& client) {
  std::erase_if(jobs_, [&](const Job& job) { return job.client == &client; });
  if (help_ && help_->client == &client) StopHelping();
  if (!command_ || command_->client != &client) return;
  command_->client = nullptr;
  if (phase_ == Phase::kRunning) EndCommand(EndReason::kCancelled);
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
  if (end && command_) command_->end = std::move(end);
  TellReady();
}

// A shell that is killed may have told the end just before: the next command waits for the next
// shell all the same.
bool Server::HasEnded() const {
  return command_ && command_->end && !help_ && phase_ != Phase::kDraining &&
         command_->killed_generation != shell_.generation();
}

void Server::DrainIfEnded() {
  if (!HasEnded()) return;
  // The kernel may have ended the command before its supervisor could.
  if (!command_->reason && KilledForMemory(*command_)) command_->reason = EndReason::kMemory;
  if (command_->reason) KillCommand();
  phase_ = Phase::kDraining;
}

void Server::TellShell() {
  while (control_.valid() && !to_shell_.empty()) {
    ssize_t n =
        ::send(control_.get(), to_shell_.data(), to_shell_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    to_shell_.erase(0, static_cast<size_t>(n));
  }
}

void Server::TellReady() {
  was_ready_ = was_ready_ || shell_.idle();
  if (!was_ready_) return;
  if (config_.ready.valid()) {
    CloseInherited(&config_.inherited);
    // Its creator ended meanwhile, so this sandbox has no user.
    abandoned_ = !sys::WriteAll(config_.ready.get(), wire::Write(State())).ok();
    config_.ready.Close();
  }
  for (const auto& client : clients_) {
    if (!std::exchange(client->awaits_state, false)) continue;
    client->channel.Send(wire::Write(MessageKind::kState, State()));
  }
}

SandboxState Server::State() const {
  SandboxState state;
  state.shell = shell_.kind();
  state.cwd = shell_.cwd();
  state.busy = phase_ != Phase::kIdle;
  state.waiting = static_cast<int64_t>(jobs_.size());
  state.commands = commands_;
  state.seconds_left = config_.expires.poll_ms() / 1000;
  if (stage_) state.limits = LimitsUsed();
  return state;
}

// Does what is due by now.
void Server::Advance() {
  if (help_ && help_->ends.passed()) {
    StopHelping(Error{Code::kTemporary, "the sandbox's time limit for one command passed"});
  }
  AwaitShell();
  if (!command_) return;
  DrainIfEnded();
  if (phase_ == Phase::kRunning && command_->ends.passed()) EndCommand(EndReason::kTimeout);
  if (phase_ != Phase::kEnding) return;
  KillCommand();
  if (command_->lost.passed()) lost_ = true;  // Not even its shell's end could be had.
}

// Beside a terminal, what works with files does not wait for its end.
std::optional<Server::Job> Server::TakeNextJob() {
  auto next = jobs_.begin();
  if (phase_ == Phase::kRunning && command_->terminal) {
    next = std::find_if(jobs_.begin(), jobs_.end(),
                        [](const Job& job) { return job.kind != MessageKind::kExec; });
  } else if (phase_ != Phase::kIdle || !shell_.idle()) {
    return std::nullopt;
  }
  if (next == jobs_.end()) return std::nullopt;
  Job job = std::move(*next);
  jobs_.erase(next);
  return job;
}

void Server::StartNext() {
  while (std::optional<Job> job = TakeNextJob()) {
    Client& client = *job->client;
    const bool starts = job->kind == MessageKind::kExec || job->kind == MessageKind::kTerminal;
    Status hidden = starts ? HideLateFiles() : Ok();
    if (!hidden.ok()) {
      client.channel.Send(wire::Write(MessageKind::kFault, hidden.error()));
    } else if (job->kind == MessageKind::kDiff) {
      SendDiff(client);
    } else if (job->kind == MessageKind::kApply) {
      Apply(client);
    } else if (job->kind == MessageKind::kExec) {
      int64_t limit = config_.command_timeout.count();
      if (job->exec.timeout_ms > 0) limit = job->exec.timeout_ms;
      BeginCommand(&client, job->script, Deadline::After(milliseconds(limit)));
      command_->repeats = agent::RepeatFilter(job->exec.stream);
      command_->lists_changes = job->exec.lists_changes;
    } else {
      Status started = StartHelp(std::move(*job));
      if (started.ok()) return;
      StopHelping();
      client.channel.Send(wire::Write(MessageKind::kFault, started.error()));
    }
  }
}

void Server::BeginCommand(Client* client, const std::string& script, Deadline ends) {
  command_.emplace(stage_->secrets);
  command_->client = client;
  command_->ends = ends;
  command_->before = processes_->List();
  command_->cpu_before = stage_->sandbox.cgroup().ProcessorTime();
  command_->kills_before = stage_->sandbox.cgroup().OutOfMemoryKills().value_or(0);
  if (git_.IsStale(stage_->sandbox)) {
    Pause pause(*processes_);
    // What cannot be followed is left as it is, until the next command.
    Status followed = git_.Follow(stage_->sandbox);
    if (!followed.ok()) logging::Warn("git inside is behind", {{"why", followed.error().what}});
  }
  // This is not done after the command before, because its client waited.
  files_->Settle();
  if (!stage_->sandbox.copied()) {
    timespec layer{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &layer);  // The clock that stamps files.
    command_->beginning = {layer, sys::FileTime(stage_->checkout.path)};
  }
  to_shell_ = shell_.Begin(script);  // A shell that waits for a script has read all before it.
  phase_ = Phase::kRunning;
  ++commands_;
}

void Server::EndCommand(EndReason reason) {
  shell_.DoNotRepeat();
  command_->reason = reason;
  command_->kills = Deadline::After(kShellGrace);
  command_->lost = Deadline::After(kLostAfter);
  phase_ = Phase::kEnding;
  KillCommand();
}

// All that was not there before it. The shell is given a moment to say so.
void Server::KillCommand() {
  std::set<pid_t> spared = command_->before;
  pid_t shell = processes_->shell();
  bool waits = command_->end || !command_->kills.passed();
  if (waits) {
    spared.insert(shell);
  } else {
    spared.erase(shell);
    command_->killed_generation = shell_.generation();
    command_->kills = Deadline::After(kNextShellGrace);
  }
  processes_->KillBut(spared);
}

void Server::Take(run::AgentOutput::Pipe pipe, std::string_view bytes) {
  if (!command_ || command_->terminal) return;
  bool output = pipe == run::AgentOutput::Pipe::kOutput;
  if (output) bytes = command_->repeats.Feed(bytes);
  int64_t room = std::max<int64_t>(config_.output_bytes - command_->taken_bytes, 0);
  std::string_view taken = bytes.substr(0, static_cast<size_t>(room));
  command_->taken_bytes += static_cast<int64_t>(taken.size());
  auto lost = static_cast<int64_t>(bytes.size() - taken.size());
  (output ? command_->truncated_output : command_->truncated_error) += lost;
  codec::MaskedStream& masked = output ? command_->output : command_->error;
  SendPieces(output ? MessageKind::kOutput : MessageKind::kError, masked.Feed(taken));
  if (lost > 0 && phase_ == Phase::kRunning) EndCommand(EndReason::kOutput);
}

void Server::SendPieces(MessageKind kind, std::string_view bytes) {
  if (command_->client == nullptr) return;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPieceBytesMax))) {
    command_->client->channel.Send(wire::Write(kind, bytes.substr(0, kPieceBytesMax)));
  }
}

bool Server::full() const {
  return command_ && command_->client != nullptr && command_->client->channel.full();
}

void Server::Drained() {
  SendPieces(MessageKind::kOutput, command_->output.Finish());
  SendPieces(MessageKind::kError, command_->error.Finish());
  CommandResult result = ResultOf(*command_);
  auto tell = [&] {
    if (command_->client == nullptr) return;
    command_->client->channel.Send(wire::Write(MessageKind::kResult, result));
  };
  if (!command_->lists_changes) tell();
  const change::TouchedFiles touched = LookAfter(*command_);
  if (command_->lists_changes) {
    result.changes_complete = AddChanges(touched.files, &result.changes) && touched.complete;
    tell();
  }
  command_.reset();
  phase_ = Phase::kIdle;
  StartNext();
  TellShell();
}

bool Server::KilledForMemory(const Command& command) const {
  return stage_->sandbox.cgroup().OutOfMemoryKills().value_or(0) > command.kills_before;
}

CommandResult Server::ResultOf(const Command& command) {
  CommandResult result;
  result.status = command.end->status;
  result.shell_lost = command.end->lost || command.killed_generation;
  result.cwd = shell_.cwd();
  // A shell knows no more than its `$?`.
  const EndReason own = result.status > 128 ? EndReason::kSignal : EndReason::kExit;
  result.reason = command.reason.value_or(own);
  if (KilledForMemory(command)) {
    result.reason = EndReason::kMemory;
    stage_->sandbox.ForgiveMemory();
  }
  result.wall_ms = Milliseconds(Deadline::Clock::now() - command.started);
  std::optional<std::chrono::nanoseconds> cpu = stage_->sandbox.cgroup().ProcessorTime();
  if (cpu && command.cpu_before) result.cpu_ms = Milliseconds(*cpu - *command.cpu_before);
  result.memory_peak_bytes = stage_->sandbox.cgroup().MemoryPeakBytes().value_or(-1);
  result.truncated_stdout = command.truncated_output;
  result.truncated_stderr = command.truncated_error;
  result.changes_complete = false;
  return result;
}

bool Server::Absorb(sandbox::LimitName limit) {
  if (limit != sandbox::LimitName::kMemory || !command_ || phase_ == Phase::kIdle) return false;
  if (help_) StopHelping(Error{Code::kTemporary, "the memory limit ended what runs meanwhile"});
  // Once more while it is being ended: it is not this command that takes the memory.
  if (phase_ != Phase::kRunning)
    return command_->reason == EndReason::kMemory && !command_->lost.passed();
  EndCommand(EndReason::kMemory);
  stage_->sandbox.ForgiveMemory();
  return true;
}

void Server::Conclude(const Result<EndReport>& end, const std::string& why) {
  Deadline deadline = Deadline::After(kFarewell);
  // After a reset, those that wait to be accepted are the next instance's.
  while (!reset_ && clients_.size() < kClientsMax && Accept()) {
  }
  for (const auto& client : clients_) {
    std::string message;
    Fd fd;
    MessageKind kind{};
    DeleteRequest request;
    while (!reset_ && client->channel.Receive(&message, &fd)) {
      bool deletes = wire::Read(message, kind, request) && kind == MessageKind::kDelete;
      client->awaits_end = client->awaits_end || deletes;
    }
    if (client->awaits_end) {
      client->channel.Send(end.ok() ? wire::Write(MessageKind::kEnded, end.value())
                                    : wire::Write(MessageKind::kFault, end.error()));
    } else {
      client->channel.Send(wire::Write(MessageKind::kFault, Error{Code::kIo, why}));
    }
    client->channel.Finish(deadline);
  }
  clients_.clear();
}

}  // namespace session
