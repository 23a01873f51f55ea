// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "backend/openshell/job.h"
#include "backend/openshell/transfer.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/wire.h"
#include "codec/data/json.h"
#include "codec/text/shell_word.h"
#include "run/collect.h"
#include "run/run.h"
#include "session/change_list.h"
#include "session/shell.h"

namespace openshell {
namespace {

using session::EndReport;
using session::MessageKind;

constexpr std::chrono::seconds kClientTime{5};
constexpr std::chrono::seconds kFetchTime{600};
constexpr size_t kTransfersMax = 16;
constexpr size_t kReadyTextMax = 65536;
constexpr char kLimitsName[] = "/limits.json";
constexpr char kEnvironmentName[] = "/environment.sh";

Status WriteLimits(const std::string& state, const run::Request& request,
                   const std::string& invocation) {
  codec::Json json;
  json.Set("timeout_s", request.timeout_s);
  json.Set("output_bytes", request.output_bytes);
  if (request.approval_mode == "manual") json.Set("invocation", invocation);
  return sys::WriteFile(state + kLimitsName, codec::RenderJson(json), 0600);
}

Status WriteEnvironment(const std::string& state, const Variables& variables) {
  std::string script;
  for (const auto& [name, value] : variables) {
    script += "export " + name + "=" + codec::ShellWord(value) + "\n";
  }
  return sys::WriteFile(state + kEnvironmentName, script, 0600);
}

bool IsBusy(const std::string& state) {
  Result<Fd> lock = sys::Open(state + kCommandLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  return lock.ok() && ::flock(lock.value().get(), LOCK_EX | LOCK_NB) != 0;
}

// Serves clients, one at a time, until the sandbox is to end.
class Keeper : public run::Driver {
 public:
  Keeper(const session::CreateRequest& create, const session::Entry& entry, int listener)
      : create_(create), entry_(entry), listener_(listener) {}

  // The whole life of the sandbox; `ready` learns when it can be used, or why it cannot.
  void Keep(Fd ready) {
    inherited_ =
        session::TakeInherited({entry_.directory.get(), entry_.lock.get(), listener_, ready.get()});
    run::Request request = session::RequestOf(create_);
    ready_ = &ready;
    expires_ = Deadline::After(std::chrono::seconds(create_.ttl_s));
    Result<int> ended = run::Run(request, create_.rules, this);
    session::Remove(entry_);  // First: the name may be used again by the client that is told.
    const std::string why = ended.ok() ? "the sandbox ended" : ended.error().what;
    if (ready.valid()) {
      Error error = ended.ok() ? Error{Code::kIo, why + " before a command could run in it: see " +
                                                      request.report_dir + "/run.json"}
                               : std::move(ended).error();
      (void)sys::WriteAll(ready.get(), wire::Write(error));
      return;
    }
    if (!client_.valid()) return;
    (void)sys::SendMessage(
        client_.get(),
        ended.ok() ? wire::Write(MessageKind::kEnded, EndReport{ended.value(), request.report_dir})
                   : wire::Write(MessageKind::kFault, ended.error()));
  }

 private:
  Result<run::AgentEnd> Attend(run::Enclosure& enclosure) override {
    auto& job = static_cast<Job&>(enclosure);
    state_ = job.gateway().state().path();
    TRY(WriteLimits(state_, create_.run, job.gateway().invocation()));
    TRY(WriteEnvironment(state_, job.Environment()));
    session::Facts facts = session::FactsOf(create_, entry_.name, ::getpid());
    facts.state = state_;
    TRY(session::WriteFacts(entry_, facts));
    session::CloseInherited(&inherited_);
    TRY(sys::WriteAll(ready_->get(), wire::Write(State())));
    ready_->Close();
    run::AgentEnd end;
    end.kind = Serve(job);
    for (const pid_t transfer : transfers_) {
      (void)::kill(transfer, SIGKILL);
      (void)::waitpid(transfer, nullptr, 0);
    }
    end.status = 0;
    end.summary.succeeded = true;
    return end;
  }

  bool applies(bool asked) const override { return asked || apply_; }
  bool applies_ignored(bool asked) const override { return asked || apply_ignored_; }

  session::SandboxState State() const {
    session::SandboxState state;
    state.shell = "new for each command";
    state.cwd = kWorkspace;
    state.busy = IsBusy(state_);
    state.seconds_left = expires_.poll_ms() / 1000;
    return state;
  }

  // Gives how it ended: as a native sandbox does when it is deleted or its time has passed.
  run::EndCause Serve(Job& job) {
    for (;;) {
      pollfd sources[] = {
          {listener_, POLLIN, 0}, {job.signals(), POLLIN, 0}, {job.gateway().ended(), POLLIN, 0}};
      if (::poll(sources, std::size(sources), expires_.poll_ms()) < 0 && errno != EINTR) {
        return run::EndKind::kSandboxLost;
      }
      if (sources[2].revents != 0) return run::EndKind::kGatewayLost;
      if (sources[1].revents != 0) return run::PendingEnd().value_or(run::EndKind::kTerminated);
      if (expires_.passed()) return sandbox::LimitName::kTimeout;
      if (sources[0].revents != 0 && Answer(job)) {
        Result<bool> there = job.sandbox().IsReady();
        if (there.ok() && !there.value()) there = job.sandbox().Restart();
        if (!there.ok()) return run::EndKind::kGatewayLost;
        return there.value() ? run::EndKind::kExited : run::EndKind::kSandboxLost;
      }
    }
  }

  // Answers one client's question. Returns true if the sandbox is to end, and client_ waits for
  // that.
  bool Answer(Job& job) {
    Fd client(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return false;
    std::string script;
    Result<sys::Message> message = ReceiveOrder(client, &script);
    if (!message.ok()) return false;
    const std::string& bytes = message.value().bytes;
    MessageKind kind{};
    session::DeleteRequest request;
    session::ExecRequest unused;
    session::TransferRequest transfer;
    std::string shown;
    if (wire::Read(bytes, kind, request) && kind == MessageKind::kDelete) {
      apply_ = request.apply;
      apply_ignored_ = request.apply_ignored;
      client_ = std::move(client);
      return true;
    }
    if (wire::Read(bytes, kind) && kind == MessageKind::kStatus) {
      (void)sys::SendMessage(client.get(), wire::Write(MessageKind::kState, State()));
      return false;
    }
    (void)job.sandbox().Restart();  // Where it cannot, the order says why.
    if (wire::Read(bytes, kind, unused) && kind == MessageKind::kDiff) {
      SendChanges(job, client);
    } else if (wire::Read(bytes, kind, transfer) && message.value().fd.valid() &&
               (kind == MessageKind::kPut || kind == MessageKind::kGet)) {
      StartTransfer(job, kind, transfer, client, message.value().fd);
    } else if (wire::Read(bytes, kind, shown) && kind == MessageKind::kPolicy) {
      Conclude(client, job.ReplacePolicy(script, shown));
    } else {
      Refuse(client, {Code::kUnsupported, "a sandbox of OpenShell cannot do that"});
    }
    return false;
  }

  // Receives what a client asks for, behind the pieces of a `script`.
  static Result<sys::Message> ReceiveOrder(const Fd& client, std::string* script) {
    for (;;) {
      sys::Message message = TRY(sys::ReceiveMessage(client.get(), session::kMessageBytesMax,
                                                     Deadline::After(kClientTime)));
      MessageKind kind{};
      std::string piece;
      if (!wire::Read(message.bytes, kind, piece) || kind != MessageKind::kScript) return message;
      if (script->append(piece).size() > session::kScriptBytesMax) {
        return Error{Code::kInvalid, "the script is too long"};
      }
    }
  }

  static void Refuse(const Fd& client, const Error& error) {
    (void)sys::SendMessage(client.get(), wire::Write(MessageKind::kFault, error));
  }

  static void Conclude(const Fd& client, const Result<std::string>& done) {
    if (!done.ok()) return Refuse(client, done.error());
    (void)sys::SendMessage(client.get(), wire::Write(MessageKind::kDone, done.value()));
  }

  // Copies files in a process of its own: a client may take its time, and others are served.
  void StartTransfer(Job& job, MessageKind kind, const session::TransferRequest& request,
                     const Fd& client, Fd& stream) {
    std::erase_if(transfers_, [](pid_t one) { return ::waitpid(one, nullptr, WNOHANG) != 0; });
    if (transfers_.size() >= kTransfersMax) {
      return Refuse(client, {Code::kTemporary, "too many copies of files at once"});
    }
    const pid_t pid = ::fork();
    if (pid < 0) return Refuse(client, Errno("fork"));
    if (pid > 0) return transfers_.push_back(pid);
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::signal(SIGPIPE, SIG_IGN);  // Where the client has gone, something is to be removed.
    ::close(listener_);
    Result<std::string> done = Transfer(job.sandbox(), kind, request, stream.get());
    stream.Close();  // Its other end reads until then.
    Conclude(client, done);
    ::_exit(0);
  }

  Result<std::string> Transfer(const Sandbox& sandbox, MessageKind kind,
                               const session::TransferRequest& request, int stream) const {
    const int64_t bytes_max = create_.run.disk_bytes;
    if (kind == MessageKind::kPut) {
      TRY(TakeFiles(sandbox, request, stream, bytes_max));
      return std::string();
    }
    const FetchLimits limits{bytes_max, Deadline::After(kFetchTime)};
    return SendFiles(sandbox, request, stream, state_ + "/got-" + std::to_string(::getpid()),
                     limits);
  }

  static void SendChanges(Job& job, const Fd& client) {
    Result<change::ChangeSet> changes = job.Changes();
    if (!changes.ok()) return Refuse(client, changes.error());
    std::string_view patch = changes.value().patch;
    for (; !patch.empty(); patch.remove_prefix(std::min(patch.size(), session::kPieceBytesMax))) {
      std::string_view piece = patch.substr(0, session::kPieceBytesMax);
      if (!sys::SendMessage(client.get(), wire::Write(MessageKind::kPiece, piece)).ok()) return;
    }
    std::vector<session::FileChange> list;
    const bool complete =
        session::AddChanges(changes.value().files, &list) && changes.value().complete;
    (void)sys::SendMessage(client.get(), wire::Write(MessageKind::kChanges, list, complete));
  }

  const session::CreateRequest& create_;
  const session::Entry& entry_;
  int listener_;
  std::vector<int> inherited_;
  Fd* ready_ = nullptr;  // Learns when the sandbox can be used.
  Deadline expires_ = Deadline::Never();
  std::string state_;
  std::vector<pid_t> transfers_;  // The processes that copy files; those that ended, too.
  Fd client_;
  bool apply_ = false;
  bool apply_ignored_ = false;
};

Result<Fd> Prepare(const session::Place& place, const session::Entry& entry,
                   session::CreateRequest* create) {
  TRY(session::MakeAbsolute(&create->run));
  TRY(session::CheckReport(place, *create));
  TRY(CheckOptions(create->run));
  TRY(session::WriteFacts(entry, session::FactsOf(*create, entry.name, 0)));
  return session::Listen(entry);
}

[[noreturn]] void BecomeKeeper(const session::CreateRequest& create, const session::Entry& entry,
                               const Fd& listener, Fd ready) {
  (void)::setsid();
  Status redirected = session::RedirectStreams(entry);
  if (redirected.ok()) {
    Keeper(create, entry, listener.get()).Keep(std::move(ready));
    ::_exit(0);
  }
  session::Remove(entry);
  (void)sys::WriteAll(ready.get(), wire::Write(redirected.error()));
  ::_exit(1);
}

}  // namespace

Result<CommandLimits> ReadLimits(const std::string& state) {
  std::string text = TRY(sys::ReadFile(state + kLimitsName, kReadyTextMax));
  codec::Json json = TRY(codec::ParseJson(text));
  return CommandLimits{json.IntegerAt("timeout_s"), json.IntegerAt("output_bytes"),
                       json.StringAt("invocation")};
}

Result<std::string> ReadEnvironment(const std::string& state) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  return sys::ReadFile(state + kEnvironmentName, kBytesMax);
}

Result<session::Created> CreateLasting(const session::CreateRequest& wanted) {
  session::CreateRequest create = wanted;
  session::Place place = TRY(session::Place::Open());
  session::Entry entry = TRY(place.Make(create.name));
  Result<Fd> listener = Prepare(place, entry, &create);
  if (!listener.ok()) {
    session::Remove(entry);
    return std::move(listener).error();
  }
  auto [ready_read, ready_write] = TRY(sys::Pipe());
  pid_t keeper = ::fork();
  if (keeper < 0) return Errno("fork");
  if (keeper == 0) {
    ready_read.Close();
    BecomeKeeper(create, entry, listener.value(), std::move(ready_write));
  }
  ready_write.Close();
  session::SandboxState state = TRY(session::AwaitReady(ready_read));
  return session::Created{session::FactsOf(create, entry.name, keeper), std::move(state)};
}

}  // namespace openshell
