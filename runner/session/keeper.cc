// SPDX-License-Identifier: Apache-2.0
#include "session/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "agent/description.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "base/tree.h"
#include "base/wire.h"
#include "report/read.h"
#include "run/model_access.h"
#include "run/run.h"
#include "session/server.h"

namespace session {
namespace {

constexpr size_t kReadyBytesMax = 65536;
// The exit status by which a supervisor says that another instance is to follow.
constexpr int kFollowed = 200;
// The time that a supervisor has for its report when its creator has gone.
constexpr std::chrono::seconds kCancelTime{3};

void ReportFailure(Fd ready, const Error& error) {
  if (ready.valid()) (void)sys::WriteAll(ready.get(), wire::Write(error));
}

// Returns what the clients of a sandbox are told that has ended, with its report in `directory`.
std::string WordsOfEnd(const std::string& directory) {
  std::string words = "the sandbox ended: ";
  Result<report::PostedReport> report = report::ReadReport(directory);
  if (report.ok() && !report.value().record.outcome.reason.empty()) {
    words += report.value().record.outcome.reason + "; ";
  }
  return words + "see " + directory + "/run.json";
}

// One instance: the status is the keeper's to understand.
int Supervise(const CreateRequest& create, const Entry& entry, int listener, Fd ready,
              Deadline expires, std::vector<int> inherited) {
  ServerConfig config;
  config.listener = listener;
  config.ready = std::move(ready);
  config.inherited = std::move(inherited);
  config.command_timeout = std::chrono::seconds(create.run.timeout_s);
  config.output_bytes = create.run.output_bytes;
  config.expires = expires;
  config.keep_policy = [&entry](std::string_view text) { return WritePolicy(entry, text); };
  config.keeper = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0)));
  Server server(std::move(config));
  run::Request request = RequestOf(create);
  request.timeout_s = std::max<int64_t>(expires.poll_ms() / 1000, 1);
  request.replaced_policy = entry.path + "/" + kPolicyName;
  Result<int> ended = run::Run(request, create.rules, &server);
  // First: who is told of a failure may use the name again at once.
  if (!server.reset()) Remove(entry);
  if (!ended.ok()) {
    ReportFailure(server.TakeReady(), ended.error());
  } else {
    ReportFailure(server.TakeReady(),
                  Error{Code::kIo, "the sandbox ended before a command could run in it: see " +
                                       request.report_dir + "/run.json"});
  }
  if (server.reset()) {
    server.Conclude(EndReport{0, request.report_dir}, "the sandbox was reset");
    return ended.ok() ? kFollowed : static_cast<int>(ExitCodeOf(ended.error().code));
  }
  if (ended.ok()) {
    server.Conclude(EndReport{ended.value(), request.report_dir}, WordsOfEnd(request.report_dir));
  } else {
    server.Conclude(ended.error(), "the sandbox ended: " + ended.error().what);
  }
  return 0;
}

// What tells, until a command can run, whether the creator still waits for that.
struct Start {
  Fd ready;      // Its reader is the creator.
  Fd preparing;  // Its writer is the supervisor, which closes it before it writes to `ready`.
};

// Waits until `supervisor` has ended; passes SIGINT and SIGTERM on to it, and ends it if its
// creator goes away before it is ready.
int Await(pid_t supervisor, const Fd& signals, Start start) {
  Deadline kills = Deadline::Never();
  for (;;) {
    int status = 0;
    pid_t ended = ::waitpid(supervisor, &status, WNOHANG);
    if (ended == supervisor) return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (ended < 0 && errno != EINTR) return 0;
    if (kills.passed()) {
      (void)::kill(supervisor, SIGKILL);
      kills = Deadline::Never();
    }
    pollfd sources[] = {
        {signals.get(), POLLIN, 0}, {start.preparing.get(), 0, 0}, {start.ready.get(), 0, 0}};
    if (::poll(sources, std::size(sources), kills.poll_ms()) < 0) continue;
    if (sources[1].revents == 0 && sources[2].revents != 0) {
      (void)::kill(supervisor, SIGTERM);
      kills = Deadline::After(kCancelTime);
    }
    if (sources[1].revents != 0 || sources[2].revents != 0) start = {};
    signalfd_siginfo signal{};
    if (sources[0].revents == 0 || ::read(signals.get(), &signal, sizeof signal) <= 0) continue;
    if (signal.ssi_signo != SIGCHLD) (void)::kill(supervisor, static_cast<int>(signal.ssi_signo));
  }
}

[[noreturn]] void Keep(const CreateRequest& create, Entry entry, Fd listener, Fd ready) {
  (void)::setsid();
  // Its environment has the credentials, for a supervisor that follows a reset: no other process of
  // this user may read it. A supervisor wipes what it takes, and has to be able to map ids.
  (void)::prctl(PR_SET_DUMPABLE, 0);
  std::vector<int> inherited =
      TakeInherited({entry.directory.get(), entry.lock.get(), listener.get(), ready.get()});
  auto fail = [&](const Error& error) {
    Remove(entry);
    ReportFailure(std::move(ready), error);
    ::_exit(1);
  };
  Status redirected = RedirectStreams(entry);
  if (!redirected.ok()) fail(redirected.error());
  Result<std::pair<Fd, Fd>> preparing = sys::Pipe();
  if (!preparing.ok()) fail(preparing.error());
  Start start{Fd(::fcntl(ready.get(), F_DUPFD_CLOEXEC, 0)), std::move(preparing.value().first)};
  inherited.push_back(preparing.value().second.Take());
  sigset_t signals;
  sigset_t before;
  ::sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  // A supervisor has it pending until it catches it (run::CatchSignals).
  ::sigaddset(&before, SIGUSR1);
  Fd caught(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!caught.valid()) fail(Errno("signalfd"));
  Deadline expires = Deadline::After(std::chrono::seconds(create.ttl_s));
  pid_t keeper = ::getpid();
  for (int status = kFollowed; status == kFollowed;) {
    pid_t supervisor = ::fork();
    if (supervisor == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
      (void)::prctl(PR_SET_DUMPABLE, 1);
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      if (::getppid() != keeper) ::_exit(1);
      start = {};
      caught.Close();
      int end =
          Supervise(create, entry, listener.get(), std::move(ready), expires, std::move(inherited));
      ::_exit(end);
    }
    CloseInherited(&inherited);
    ready.Close();
    sys::ReleaseUnusedMemory();
    status = supervisor < 0 ? 0 : Await(supervisor, caught, std::exchange(start, {}));
  }
  Remove(entry);  // The directory of one that was killed.
  ::_exit(0);
}

}  // namespace

Status MakeAbsolute(run::Request* request) {
  request->workdir = TRY(ResolveNamedDirectory(request->workdir));
  std::error_code failed;
  std::filesystem::path report = std::filesystem::absolute(request->report_dir, failed);
  if (failed) return Error{Code::kIo, request->report_dir + ": " + failed.message()};
  request->report_dir = report.lexically_normal().string();
  if (request->report_dir.ends_with('/')) request->report_dir.pop_back();
  return Ok();
}

Status CheckReport(const Place& place, const CreateRequest& create) {
  for (const Facts& other : place.List()) {
    if (other.report_dir != create.run.report_dir) continue;
    return Error{
        Code::kUsage,
        create.run.report_dir + " is where sandbox '" + other.name + "' is to write its report",
        "--report-dir OTHER-DIRECTORY"};
  }
  return Ok();
}

run::Request RequestOf(const CreateRequest& create) {
  run::Request request = create.run;
  request.lasting = true;
  request.timeout_s = create.ttl_s;
  request.given.emplace_back("timeout");  // No task of the configuration shortens its life.
  request.json = false;
  request.prompt.clear();
  request.prompt_file.clear();
  request.command.clear();
  if (request.agent == agent::kAnyProgram) {
    request.command = {"sh"};
  } else {
    request.prompt = "-";  // Never given to it: agents cannot be planned without.
  }
  return request;
}

Status RedirectStreams(const Entry& entry) {
  Fd none = TRY(sys::Open("/dev/null", O_RDWR));
  Fd log = TRY(sys::OpenAt(entry.directory.get(), kLogName, O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (::dup2(none.get(), STDIN_FILENO) < 0 || ::dup2(log.get(), STDOUT_FILENO) < 0 ||
      ::dup2(log.get(), STDERR_FILENO) < 0) {
    return Errno("dup2");
  }
  return Ok();
}

std::vector<int> TakeInherited(const std::vector<int>& own) {
  std::vector<int> inherited;
  Result<Fd> listed = sys::Open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (!listed.ok()) return inherited;
  Result<std::vector<std::string>> names = sys::DirectoryNames(listed.value().get());
  if (!names.ok()) return inherited;
  for (const std::string& name : names.value()) {
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    bool kept = fd <= STDERR_FILENO || fd == listed.value().get() ||
                std::find(own.begin(), own.end(), fd) != own.end();
    if (!kept && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) inherited.push_back(fd);
  }
  return inherited;
}

void CloseInherited(std::vector<int>* inherited) {
  for (int fd : *inherited) ::close(fd);
  inherited->clear();
}

Facts FactsOf(const CreateRequest& create, const std::string& name, pid_t keeper) {
  auto now = static_cast<int64_t>(::time(nullptr));
  return {name,
          keeper,
          now,
          now + create.ttl_s,
          create.run.workdir,
          create.run.image,
          create.run.agent,
          TextOf(create.run.isolation),
          create.run.report_dir,
          std::string(create.run.backend.name),
          {},
          create.pool,
          create.run.policy_ref,
          run::ProviderNames(create.run),
          run::ForeseenVariables(create.run)};
}

Result<SandboxState> AwaitReady(const Fd& ready) {
  std::string told = TRY(sys::ReadAll(ready.get(), kReadyBytesMax));
  SandboxState state;
  if (wire::Read(told, state)) return state;
  Error error{Code::kIo, "the process that keeps the sandbox was killed"};
  (void)wire::Read(told, error);
  return error;
}

Result<Created> Create(const CreateRequest& request, const std::function<void()>& in_keeper) {
  Starting starting = TRY(StartKeeper(request, in_keeper));
  SandboxState state = TRY(AwaitReady(starting.ready));
  return Created{std::move(starting.facts), std::move(state)};
}

Result<Starting> StartKeeper(const CreateRequest& wanted, const std::function<void()>& in_keeper) {
  CreateRequest create = wanted;
  Place place = TRY(Place::Open());
  Entry entry = TRY(place.Make(create.name));
  std::string name = entry.name;
  Status fine = MakeAbsolute(&create.run);
  if (fine.ok()) fine = CheckReport(place, create);
  if (fine.ok() && !create.policy.empty()) fine = WritePolicy(entry, create.policy);
  if (fine.ok()) fine = WriteFacts(entry, FactsOf(create, name, 0));
  if (!fine.ok()) {
    Remove(entry);
    return std::move(fine).error();
  }
  Result<Fd> listener = Listen(entry);
  if (!listener.ok()) {
    Remove(entry);
    return std::move(listener).error();
  }
  auto [ready_read, ready_write] = TRY(sys::Pipe());
  pid_t keeper = ::fork();
  if (keeper < 0) return Errno("fork");
  if (keeper == 0) {
    ready_read.Close();
    if (in_keeper) in_keeper();
    (void)WriteFacts(entry, FactsOf(create, name, ::getpid()));
    Keep(create, std::move(entry), std::move(listener).value(), std::move(ready_write));
  }
  return Starting{FactsOf(create, name, keeper), std::move(ready_read)};
}

}  // namespace session
