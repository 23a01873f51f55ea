// SPDX-License-Identifier: Apache-2.0
// The part of a Server for whole trees of files, which it sends and takes, keeps and restores, and
// for what commands read.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/sys.h"
#include "base/wire.h"
#include "change/apply.h"
#include "change/gate.h"
#include "change/given/given_files.h"
#include "change/layer_watch.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "report/write.h"
#include "run/collect.h"
#include "run/environment.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "session/change_list.h"
#include "session/helper_work.h"
#include "session/server.h"

namespace session {
namespace {

Result<Fd> Duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return Errno("fcntl(F_DUPFD)");
  return copy;
}

// Returns `state` for this run: with its variables where the run of the snapshot gave its agent
// other values, and with its checkout where the snapshot's was elsewhere.
std::string StateFor(const RestoreRequest& restore, std::string state,
                     const sandbox::SandboxPlan& plan) {
  for (const std::string& variable : plan.env) {
    const std::vector<std::string>& before = restore.facts.environment;
    if (std::find(before.begin(), before.end(), variable) != before.end()) continue;
    size_t equals = variable.find('=');
    state += "\nexport " + variable.substr(0, equals) + "=" +
             codec::ShellWord(std::string_view(variable).substr(equals + 1));
  }
  if (restore.facts.checkout == plan.workdir) return state;
  std::string cwd = plan.workdir;
  if (restore.facts.cwd.starts_with(restore.facts.checkout + "/")) {
    cwd += restore.facts.cwd.substr(restore.facts.checkout.size());
  } else if (restore.facts.cwd != restore.facts.checkout) {
    cwd = restore.facts.cwd;
  }
  return state + "\ncd -- " + codec::ShellWord(cwd);
}

std::string WhyRefused(const change::Verdict& verdict) {
  std::string why = "a gate refused the changes";
  for (const change::GateFinding& finding : verdict.findings) {
    if (finding.severity != change::Severity::kError) continue;
    return why + ": " + (finding.path.empty() ? "" : finding.path + ": ") + finding.message;
  }
  return why;
}

constexpr size_t kLeftBytes = 65536;

}  // namespace

// Returns false for a piece that comes too early.
bool Server::TakeInput(Client& client, std::string_view piece) {
  if (client.input_owed || client.input_ends) return false;
  client.input = piece;
  client.input_owed = !piece.empty();
  client.input_ends = piece.empty();
  PassInput();
  return true;
}

void Server::PassInput() {
  if (!to_script_.valid() || !command_) return;
  auto found = clients_.find(state_.command->job.client);
  if (found == clients_.end()) return to_script_.Close();
  Client& client = found->second;
  while (!client.input.empty()) {
    ssize_t n = ::write(to_script_.get(), client.input.data(), client.input.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    client.input.erase(0, static_cast<size_t>(n));
  }
  if (std::exchange(client.input_owed, false)) {
    client.channel.Send(wire::Write(MessageKind::kInputTaken));
  }
  if (client.input_ends) to_script_.Close();
}

std::string Server::ScriptInput(const Fd& pipe) {
  return "/proc/self/fd/" + std::to_string(pipe.get());
}

// Before its script is told to the shell: a reader without a writer is at its end.
void Server::BeginInput() {
  Result<Fd> writer = sys::Open(ScriptInput(script_input_), O_WRONLY | O_NONBLOCK);
  if (!writer.ok()) return;  // Then its input is empty.
  to_script_ = std::move(writer).value();
  PassInput();
}

// What a command did not read is not the next one's.
void Server::EndInput() {
  if (!std::exchange(command_->has_input, false)) return;
  to_script_.Close();
  auto sender = clients_.find(state_.command->job.client);
  if (sender != clients_.end()) {
    sender->second.input.clear();
    sender->second.input_ends = true;
  }
  std::string left(kLeftBytes, '\0');
  constexpr int kReadsMax = 64;  // More than a pipe holds: what runs inside can fill it again.
  for (int reads = 0; reads < kReadsMax; ++reads) {
    if (::read(script_input_.get(), left.data(), left.size()) <= 0 && errno != EINTR) return;
  }
}

bool Server::TakeTransfer(ClientId id, Client& client, std::string_view message, Fd fd) {
  MessageKind kind{};
  Request request{};
  if (wire::Read(message, kind) && kind == MessageKind::kApply) {
    request.job.kind = kind;
  } else if (wire::Read(message, kind) && kind == MessageKind::kCommit) {
    Do({Event::Kind::kCommit, id});
    return true;
  } else if (wire::Read(message, kind) && kind == MessageKind::kShellState) {
    awaits_shell_.insert(id);
    return true;
  } else if (std::string shown; wire::Read(message, kind, shown) && kind == MessageKind::kPolicy) {
    TakePolicy(client, shown);
    return true;
  } else if (!fd.valid()) {
    return false;
  } else if (wire::Read(message, kind) && kind == MessageKind::kSnapshot) {
    request.job.kind = kind;
  } else if (wire::Read(message, kind, request.transfer) &&
             (kind == MessageKind::kPut || kind == MessageKind::kGet)) {
    request.job.kind = kind;
  } else if (wire::Read(message, kind, request.terminal) && kind == MessageKind::kTerminal) {
    request.job.kind = kind;
    request.exec.waits = false;  // A person is told at once.
  } else if (wire::Read(message, kind, request.restore) && kind == MessageKind::kRestore) {
    request.job.kind = kind;
    request.script = std::exchange(client.script, {});
  } else {
    return false;
  }
  request.stream = std::move(fd);
  Ask(id, std::move(request));
  return true;
}

Result<change::ChangeSet> Server::Capture() const {
  change::ChangedTree tree = run::TreeOf(sandbox(), report().path, plan().replaced);
  tree.meanwhile.Add(meanwhile_);
  return change::CaptureChanges(tree, checkout().path, checkout().git(), {});
}

// The report has the first ones, each once.
void Server::NoteWithheld(const std::string& path, const std::string& what) {
  logging::Info(what, {{"file", path}});
  if (noted_.size() >= run::kWithheldNotesMax || !noted_.insert(path + ": " + what).second) return;
  place_->stage().recorder.NoteAbout(path, run::kWithheldRule, what);
}

Status Server::HideLateFiles() {
  if (sandbox().copied() || !late_.MayHave(checkout().path)) return Ok();
  Pause pause(*processes_);
  Result<std::vector<sandbox::WorkspaceFile>> files =
      late_.Hide(sandbox(), checkout(), report().path);
  if (!files.ok()) {
    Error error = std::move(files).error();
    NoteWithheld("", "a command was refused: " + error.what);
    if (error.hint.empty()) error.hint = "agentic-ci sandbox delete NAME";
    return Error{error.code, "hiding what may be a credential, new in the checkout: " + error.what,
                 std::move(error.hint)};
  }
  for (sandbox::WorkspaceFile& file : files.value()) {
    NoteWithheld(file.path, "hidden from the sandbox: it appeared later, and may hold credentials");
    hidden_.insert(file.path);
    plan().replaced.push_back(std::move(file));
  }
  return Ok();
}

// Finds what the command changed. To be called before the next command begins.
change::TouchedFiles Server::LookAfter(const Command& command) {
  change::TouchedFiles touched = files_->Look();
  std::erase_if(touched.files, [&](const auto& file) { return hidden_.contains(file.path); });
  hidden_.clear();
  if (command.beginning) {
    change::NoteFound(checkout().path, sandbox().upper(), touched.files, sandbox().began(),
                      *command.beginning, &meanwhile_);
  }
  return touched;
}

// Answers a diff or an apply.
void Server::Look(const Request& request) {
  const ClientId client = request.job.client;
  if (request.job.kind == MessageKind::kDiff) return SendDiff(client);
  Result<std::string> applied = Apply();
  Send(client, applied.ok() ? wire::Write(MessageKind::kDone, applied.value())
                            : wire::Write(MessageKind::kFault, applied.error()));
}

// Sends the changes as a run's report has them, of what there is now; nothing inside moves
// meanwhile.
void Server::SendDiff(ClientId client) {
  Pause pause(*processes_);
  Result<change::ChangeSet> changes = Capture();
  if (!changes.ok()) return Send(client, wire::Write(MessageKind::kFault, changes.error()));
  SendPieces(client, MessageKind::kPiece, changes.value().patch);
  std::vector<FileChange> list;
  bool complete = AddChanges(changes.value().files, &list) && changes.value().complete &&
                  changes.value().conflicts.empty();
  Send(client, wire::Write(MessageKind::kChanges, list, complete));
}

// Sends the touched files, and stops nothing in the sandbox for it.
void Server::SendTouched(Client& client) {
  if (!client.touched) {
    Result<change::LayerWatch> watch = WatchLayer(change::LayerWatch::Since::kBeginning);
    if (!watch.ok()) return client.channel.Send(wire::Write(MessageKind::kFault, watch.error()));
    client.touched.emplace(std::move(watch).value());
  }
  change::TouchedFiles touched = client.touched->Look();
  std::vector<FileChange> list;
  bool complete = AddChanges(touched.files, &list) && touched.complete;
  client.channel.Send(wire::Write(MessageKind::kChanges, list, complete));
}

// A command's result is sent before the state that the command left in the shell.
void Server::SendShellStates() {
  if (!command_ && !shell_.idle()) return;
  for (ClientId id : std::exchange(awaits_shell_, {})) {
    SendPieces(id, MessageKind::kPiece, secrets().Mask(shell_.state()));
    Send(id, wire::Write(MessageKind::kHistory, history_));
    Do({Event::Kind::kStatus, id});
  }
}

// The shell of a person on a terminal is not a command.
void Server::Remember(const CommandResult& result) {
  if (state_.command->terminal) return;
  if (history_.size() == kPastCommandsMax) history_.erase(history_.begin());
  history_.push_back({std::move(command_->script), result.reason, result.status, result.wall_ms});
}

void Server::TakePolicy(Client& client, const std::string& shown) {
  const run::PolicyReload::Text given{std::exchange(client.script, {}), shown};
  Result<std::string> replaced =
      place_->ReplacePolicy(given, [&] { return config_.keep_policy(given.text); });
  client.channel.Send(replaced.ok() ? wire::Write(MessageKind::kDone, replaced.value())
                                    : wire::Write(MessageKind::kFault, replaced.error()));
}

// Applies the changes by the gates that judge them at the sandbox's end.
Result<std::string> Server::Apply() {
  Pause pause(*processes_);
  change::ChangeSet changes = TRY(Capture());
  change::Verdict verdict =
      change::JudgeChanges(changes, run::GatesOf(plan(), changes), &secrets());
  if (!verdict.accepted) return Error{Code::kRefused, WhyRefused(verdict)};
  TRY(report::WriteConflicts(report().at(), run::ConflictFiles(changes)));
  std::string done = std::to_string(changes.files.size());
  for (const change::Conflict& conflict : changes.conflicts) {
    if (done.size() > kPieceBytesMax) break;
    done += "\n" + codec::NeutralLine(conflict.path + ": " +
                                      run::DescribeConflict(conflict, report().path + "/"));
  }
  if (changes.patch.empty()) return done;
  const sandbox::Sandbox& sandbox = this->sandbox();
  if (!sandbox.copied()) {
    Fd lower = TRY(sys::Open(checkout().path, O_RDONLY | O_DIRECTORY));
    TRY(change::HideFutureLower(sandbox.upper(), lower.get()));
  }
  TRY(change::ApplyPatch(checkout().path, checkout().git(), changes));
  change::NoteWritten(checkout().path, sandbox.upper(), changes, &meanwhile_);
  TRY(git_.Follow(sandbox).Context("the changes are applied, but git inside does not know"));
  return done;
}

Result<Helper> Server::StartHelper(Request& request) {
  const sandbox::Sandbox& sandbox = this->sandbox();
  sandbox::Inside inside = sandbox.inside();
  std::vector<Fd> given;
  given.push_back(std::move(request.stream));
  if (request.job.kind == MessageKind::kPut || request.job.kind == MessageKind::kGet) {
    if (!request.transfer.path.starts_with('/')) {
      request.transfer.path = inside.plan->workdir + "/" + request.transfer.path;
    }
    auto work = request.job.kind == MessageKind::kPut ? TakeFiles(*inside.plan, request.transfer)
                                                      : SendFiles(request.transfer);
    return Helper::Start(sandbox, inside, sandbox::Rights::kAgent, std::move(given), work);
  }
  if (request.job.kind == MessageKind::kTerminal) {
    return Helper::Start(sandbox, inside, sandbox::Rights::kAgent, std::move(given),
                         OpenTerminalInside(request.terminal));
  }
  if (!inside.has_processes()) {
    return Error{Code::kUnsupported, "snapshots need a sandbox of tier namespaces"};
  }
  if (request.job.kind == MessageKind::kSnapshot) {
    pause_.emplace(*processes_);
    given.push_back(TRY(Duplicate(inside.layers)));
    return Helper::Start(sandbox, inside, sandbox::Rights::kLayers, std::move(given),
                         SendLayer(*inside.plan));
  }
  const int64_t room = this->sandbox().RenewalRoom();
  Shell shell(key_, request.restore.facts.shell,
              StateFor(request.restore, request.script, *inside.plan));
  TRY(MakeNext(std::move(shell), &next_));
  next_->narrowed_by = request.restore.facts.narrowed_by;
  return Helper::Start(sandbox, sandbox.InsideOf(next_->renewal), sandbox::Rights::kAgent,
                       std::move(given), TakeLayer(*inside.plan, request.restore, room));
}

Status Server::StartHelp(Request& request) {
  if (request.job.kind == MessageKind::kTerminal) TRY(HideLateFiles());
  helper_.emplace(TRY(StartHelper(request)));
  return Ok();
}

void Server::StopHelp() {
  helper_.reset();
  pause_.reset();
  next_.reset();
}

void Server::TakeHelp() {
  if (!helper_) return;
  Result<std::string> done = helper_->Take();
  helper_.reset();
  Event event{Event::Kind::kHelped};
  done.ok() ? (void)(event.text = done.value()) : (void)(event.error = done.error());
  Do(std::move(event));
}

// Secrets are not in a sandbox; what a user gave it all the same is not kept.
void Server::SendSnapshot(const Action& action) {
  const sandbox::SandboxPlan& layout = *sandbox().inside().plan;
  SnapshotFacts facts;
  (void)wire::Read(action.text, facts.files, facts.bytes, facts.left_out, facts.first_left_out);
  facts.checkout = layout.workdir;
  facts.shell = shell_.kind();
  facts.cwd = shell_.cwd();
  // A variable that does not fit is taken for another run's, and overridden by a later one's.
  size_t room = kChangesBytesMax;
  for (const std::string& variable : layout.env) {
    if (variable.size() + sizeof(uint32_t) > room) continue;
    facts.environment.push_back(secrets().Mask(variable));
    room -= variable.size() + sizeof(uint32_t);
  }
  facts.policy_sha256 = plan().policy.record.sha256;
  facts.narrowed_by = place_->NarrowedBy();
  SendPieces(action.client, MessageKind::kPiece, secrets().Mask(shell_.state()));
  Answer(action, wire::Write(MessageKind::kSnapshotFacts, facts));
}

Status Server::MakeNext(Shell shell, std::optional<Next>* next) {
  Fd now = std::move(control_);
  Fd now_input = std::move(script_input_);
  Result<sandbox::AgentInput> input = OpenInput({});  // It leaves our ends in these two.
  Fd control = std::exchange(control_, std::move(now));
  Fd script_input = std::exchange(script_input_, std::move(now_input));
  if (!input.ok()) return std::move(input).error();
  next->emplace(Next{TRY(sandbox().Renew(std::move(input).value())), std::move(control),
                     std::move(script_input), std::move(shell)});
  return Ok();
}

Status Server::PutInPlace(Next next) {
  if (!next.narrowed_by.empty()) TRY(place_->Narrow(next.narrowed_by));
  command_.reset();
  control_ = std::move(next.control);
  script_input_ = std::move(next.script_input);
  to_script_.Close();
  to_shell_.clear();
  shell_ = std::move(next.shell);
  meanwhile_ = {};
  git_ = {};
  TRY(sandbox().Replace(std::move(next.renewal)));
  return LookAtSandbox();  // No command made the restored changes.
}

SandboxState Server::Describe() const {
  SandboxState state;
  state.shell = shell_.kind();
  state.cwd = shell_.cwd();
  state.busy = state_.busy();
  state.waiting = static_cast<int64_t>(state_.jobs.size());
  state.commands = commands_;
  state.seconds_left = config_.expires.poll_ms() / 1000;
  state.limits = LimitsUsed();
  return state;
}

std::vector<LimitUse> Server::LimitsUsed() const {
  sandbox::Sandbox& sandbox = this->sandbox();
  const sandbox::SandboxLimits& most = sandbox.inside().plan->limits;
  const sandbox::Cgroup& cgroup = sandbox.cgroup();
  std::optional<std::chrono::nanoseconds> time = cgroup.ProcessorTime();
  auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.value_or(std::chrono::nanoseconds{0}));
  return {{"memory", cgroup.MemoryPeakBytes().value_or(-1), most.memory_bytes, "bytes"},
          {"disk", sandbox.DiskPeakBytes(), most.disk_bytes, "bytes"},
          {"processes", static_cast<int64_t>(processes_->List().size()), most.pids, ""},
          {"processor time", time ? seconds.count() : -1, most.cpu_s, "s"}};
}

}  // namespace session
