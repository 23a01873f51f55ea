// SPDX-License-Identifier: Apache-2.0
// The part of a Server for whole trees of files: sends and takes them, keeps and restores them.
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

void SendText(Channel& channel, std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kPieceBytesMax))) {
    channel.Send(wire::Write(MessageKind::kPiece, text.substr(0, kPieceBytesMax)));
  }
}

}  // namespace

bool Server::TakeTransfer(Client& client, std::string_view message, Fd fd) {
  MessageKind kind{};
  Job job{};
  job.client = &client;
  if (wire::Read(message, kind) && kind == MessageKind::kApply) {
    job.kind = kind;
  } else if (wire::Read(message, kind) && kind == MessageKind::kCommit) {
    Commit(client);
    return true;
  } else if (!fd.valid()) {
    return false;
  } else if (wire::Read(message, kind) && kind == MessageKind::kSnapshot) {
    job.kind = kind;
  } else if (wire::Read(message, kind, job.transfer) &&
             (kind == MessageKind::kPut || kind == MessageKind::kGet)) {
    job.kind = kind;
  } else if (wire::Read(message, kind, job.terminal) && kind == MessageKind::kTerminal) {
    job.kind = kind;
    job.exec.waits = false;  // A person is told at once.
  } else if (wire::Read(message, kind, job.restore) && kind == MessageKind::kRestore) {
    job.kind = kind;
    job.script = std::exchange(client.script, {});
  } else {
    return false;
  }
  job.stream = std::move(fd);
  Enqueue(client, std::move(job));
  return true;
}

Result<change::ChangeSet> Server::Capture() const {
  change::ChangedTree tree = run::TreeOf(stage_->sandbox, stage_->report.path, stage_->replaced);
  tree.meanwhile.Add(meanwhile_);
  return change::CaptureChanges(tree, stage_->checkout.path, stage_->checkout.git(), {});
}

Status Server::HideLateFiles() {
  if (stage_->sandbox.copied() || !late_.MayHave(*stage_)) return Ok();
  Pause pause(*processes_);
  Result<std::vector<sandbox::WorkspaceFile>> files = late_.Hide(*stage_);
  if (!files.ok()) {
    Error error = std::move(files).error();
    return Error{error.code, "hiding what may be a credential, new in the checkout: " + error.what,
                 "agentic-ci sandbox delete NAME"};
  }
  for (sandbox::WorkspaceFile& file : files.value()) {
    logging::Info("hidden from the sandbox: it appeared later, and may hold a credential",
                  {{"file", file.path}});
    hidden_.insert(file.path);
    stage_->replaced.push_back(std::move(file));
  }
  return Ok();
}

// Finds what the command changed. To be called before the next command begins.
change::TouchedFiles Server::LookAfter(const Command& command) {
  change::TouchedFiles touched = files_->Look();
  std::erase_if(touched.files, [&](const auto& file) { return hidden_.contains(file.path); });
  hidden_.clear();
  if (command.beginning) {
    change::NoteFound(stage_->checkout.path, stage_->sandbox.upper(), touched.files,
                      stage_->sandbox.began(), *command.beginning, &meanwhile_);
  }
  return touched;
}

// Sends the changes as a run's report has them, of what there is now; nothing inside moves
// meanwhile.
void Server::SendDiff(Client& client) {
  Pause pause(*processes_);
  Result<change::ChangeSet> changes = Capture();
  if (!changes.ok()) {
    return client.channel.Send(wire::Write(MessageKind::kFault, changes.error()));
  }
  SendText(client.channel, changes.value().patch);
  std::vector<FileChange> list;
  bool complete = AddChanges(changes.value().files, &list) && changes.value().complete &&
                  changes.value().conflicts.empty();
  client.channel.Send(wire::Write(MessageKind::kChanges, list, complete));
}

// Sends the touched files, and stops nothing in the sandbox for it.
void Server::SendTouched(Client& client) {
  if (!stage_) return client.channel.Close();
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

// Applies the changes by the gates that judge them at the sandbox's end.
void Server::Apply(Client& client) {
  auto apply = [&]() -> Result<std::string> {
    Pause pause(*processes_);
    change::ChangeSet changes = TRY(Capture());
    change::Verdict verdict =
        change::JudgeChanges(changes, stage_->gates(changes), &stage_->secrets);
    if (!verdict.accepted) return Error{Code::kRefused, WhyRefused(verdict)};
    TRY(report::WriteConflicts(stage_->report.at(), run::ConflictFiles(changes)));
    std::string done = std::to_string(changes.files.size());
    for (const change::Conflict& conflict : changes.conflicts) {
      if (done.size() > kPieceBytesMax) break;
      done += "\n" + codec::NeutralLine(conflict.path + ": " +
                                        run::DescribeConflict(conflict, stage_->report.path + "/"));
    }
    if (changes.patch.empty()) return done;
    const sandbox::Sandbox& sandbox = stage_->sandbox;
    if (!sandbox.copied()) {
      Fd lower = TRY(sys::Open(stage_->checkout.path, O_RDONLY | O_DIRECTORY));
      TRY(change::HideFutureLower(sandbox.upper(), lower.get()));
    }
    TRY(change::ApplyPatch(stage_->checkout.path, stage_->checkout.git(), changes));
    change::NoteWritten(stage_->checkout.path, sandbox.upper(), changes, &meanwhile_);
    TRY(git_.Follow(sandbox).Context("the changes are applied, but git inside does not know"));
    return done;
  };
  Result<std::string> applied = apply();
  client.channel.Send(applied.ok() ? wire::Write(MessageKind::kDone, applied.value())
                                   : wire::Write(MessageKind::kFault, applied.error()));
}

Result<Helper> Server::StartHelper(Job& job) {
  const sandbox::Sandbox& sandbox = stage_->sandbox;
  sandbox::Inside inside = sandbox.inside();
  std::vector<Fd> given;
  given.push_back(std::move(job.stream));
  if (job.kind == MessageKind::kPut || job.kind == MessageKind::kGet) {
    if (!job.transfer.path.starts_with('/')) {
      job.transfer.path = inside.plan->workdir + "/" + job.transfer.path;
    }
    auto work = job.kind == MessageKind::kPut ? TakeFiles(*inside.plan, job.transfer)
                                              : SendFiles(job.transfer);
    return Helper::Start(sandbox, inside, sandbox::Rights::kAgent, std::move(given), work);
  }
  if (job.kind == MessageKind::kTerminal) {
    return Helper::Start(sandbox, inside, sandbox::Rights::kAgent, std::move(given),
                         OpenTerminalInside(job.terminal));
  }
  if (!inside.has_processes()) {
    return Error{Code::kUnsupported, "snapshots need a sandbox of tier namespaces"};
  }
  if (job.kind == MessageKind::kSnapshot) {
    pause_.emplace(*processes_);
    given.push_back(TRY(Duplicate(inside.layers)));
    return Helper::Start(sandbox, inside, sandbox::Rights::kLayers, std::move(given),
                         SendLayer(*inside.plan));
  }
  const int64_t room = stage_->sandbox.RoomBeside();
  next_.emplace(TRY(MakeNext()));
  return Helper::Start(sandbox, sandbox.InsideOf(next_->renewal), sandbox::Rights::kAgent,
                       std::move(given), TakeLayer(*inside.plan, job.restore, room));
}

Status Server::StartHelp(Job job) {
  Helper helper = TRY(StartHelper(job));
  help_.emplace(Help{job.client, job.kind, std::move(helper), std::move(job.restore),
                     std::move(job.script), std::move(job.terminal),
                     Deadline::After(config_.command_timeout)});
  phase_ = Phase::kHelping;
  return Ok();
}

void Server::StopHelping(const std::optional<Error>& why) {
  if (help_ && why) help_->client->channel.Send(wire::Write(MessageKind::kFault, *why));
  help_.reset();
  pause_.reset();
  next_.reset();
  if (phase_ != Phase::kHelping && phase_ != Phase::kRestored) return;
  phase_ = command_ ? Phase::kRunning : Phase::kIdle;
  if (!command_) return;
  DrainIfEnded();
  if (phase_ == Phase::kRunning && command_->client == nullptr) EndCommand(EndReason::kCancelled);
}

void Server::TakeHelp() {
  if (!help_ || phase_ != Phase::kHelping) return;
  Result<std::string> done = help_->helper.Take();
  Client& client = *help_->client;
  if (done.ok() && help_->kind == MessageKind::kRestore) {
    phase_ = Phase::kRestored;
    return client.channel.Send(wire::Write(MessageKind::kDone, done.value()));
  }
  MessageKind kind = help_->kind;
  TerminalRequest terminal = std::move(help_->terminal);
  StopHelping();
  if (done.ok() && kind == MessageKind::kTerminal) {
    return BeginTerminal(client, terminal, done.value());
  }
  if (!done.ok()) return client.channel.Send(wire::Write(MessageKind::kFault, done.error()));
  if (kind == MessageKind::kSnapshot) return TellSnapshot(client, done.value());
  if (kind == MessageKind::kPut) (void)files_->Look();  // No command made these changes.
  client.channel.Send(wire::Write(MessageKind::kDone, done.value()));
}

// Secrets are not in a sandbox; what a user gave it all the same is not kept.
void Server::TellSnapshot(Client& client, const std::string& sent) {
  const sandbox::SandboxPlan& plan = *stage_->sandbox.inside().plan;
  SnapshotFacts facts;
  (void)wire::Read(sent, facts.files, facts.bytes, facts.left_out, facts.first_left_out);
  facts.checkout = plan.workdir;
  facts.shell = shell_.kind();
  facts.cwd = shell_.cwd();
  // A variable that does not fit is taken for another run's, and overridden by a later one's.
  size_t room = kChangesBytesMax;
  for (const std::string& variable : plan.env) {
    if (variable.size() + sizeof(uint32_t) > room) continue;
    facts.environment.push_back(stage_->secrets.Mask(variable));
    room -= variable.size() + sizeof(uint32_t);
  }
  facts.policy_sha256 = stage_->policy_sha256;
  SendText(client.channel, stage_->secrets.Mask(shell_.state()));
  client.channel.Send(wire::Write(MessageKind::kSnapshotFacts, facts));
}

Result<Server::Next> Server::MakeNext() {
  Fd now = std::move(control_);
  Result<Fd> input = OpenInput();  // It leaves our end in control_.
  Fd control = std::exchange(control_, std::move(now));
  if (!input.ok()) return std::move(input).error();
  return Next{TRY(stage_->sandbox.Renew(std::move(input).value())), std::move(control)};
}

Status Server::PutInPlace(Next next, Shell shell, const std::string& why) {
  if (command_ && command_->client != nullptr) {
    command_->client->channel.Send(wire::Write(MessageKind::kFault, Error{Code::kIo, why}));
  }
  command_.reset();
  phase_ = Phase::kIdle;
  control_ = std::move(next.control);
  to_shell_.clear();
  shell_ = std::move(shell);
  shell_due_.reset();
  was_ready_ = false;
  meanwhile_ = {};
  git_ = {};
  TRY(stage_->sandbox.Replace(std::move(next.renewal)));
  return LookAtSandbox();  // No command made the restored changes.
}

void Server::ResetInPlace(Client& client) {
  if (!stage_ || !stage_->sandbox.renewable()) {
    reset_ = true;
    client.awaits_end = true;
    return;
  }
  auto reset = [&]() -> Status {
    Next next = TRY(MakeNext());
    StopHelping(Error{Code::kIo, "the sandbox was reset"});
    return PutInPlace(std::move(next), Shell(key_), "the sandbox was reset");
  };
  Status done = reset();
  // The next command waits for the shell, which begins meanwhile.
  client.channel.Send(done.ok() ? wire::Write(MessageKind::kState, State())
                                : wire::Write(MessageKind::kFault, done.error()));
}

void Server::Commit(Client& client) {
  if (phase_ != Phase::kRestored || help_->client != &client) return client.channel.Close();
  const sandbox::SandboxPlan& plan = *stage_->sandbox.inside().plan;
  Shell shell(key_, help_->restore.facts.shell, StateFor(help_->restore, help_->state, plan));
  Next next = std::move(*next_);
  StopHelping();
  Status done = PutInPlace(std::move(next), std::move(shell), "the sandbox was restored");
  client.awaits_state = done.ok();
  if (!done.ok()) client.channel.Send(wire::Write(MessageKind::kFault, done.error()));
}

}  // namespace session
