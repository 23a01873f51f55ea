// SPDX-License-Identifier: Apache-2.0
#include "sandbox/agent_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/deadline.h"
#include "base/memory.h"
#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/limit/descendants.h"
#include "sandbox/limit/usage.h"

namespace sandbox {
namespace {

constexpr rlim_t kPendingSignals = 4096;
// How long what an ended agent has left is looked at, from when it last became more.
constexpr std::chrono::milliseconds kFewTime{50};
constexpr std::chrono::milliseconds kManyTime{1200};
constexpr std::chrono::milliseconds kLooksTime{5000};
constexpr std::chrono::milliseconds kLookPause{1};
constexpr int kQuietLooks = 3;

// Behind the standard streams.
constexpr int kMoreInput = 3;

// The agent's streams are put in place by number, so nothing else may be at 0, 1, 2 and, if it has
// a second input, 3: neither a descriptor of the set-up nor, later, a pipe that happened to get the
// lowest free number.
Status ClearStreams(const std::vector<Fd*>& kept, Fd* more) {
  std::vector<int> numbers;
  for (Fd* fd : kept) {
    if (fd->valid() && fd->get() <= kMoreInput) {
      *fd = Fd(::fcntl(fd->get(), F_DUPFD_CLOEXEC, kMoreInput + 1));
    }
    numbers.push_back(fd->get());
  }
  sys::CloseAllExcept(numbers);
  TRY(sys::FillStandardStreams());
  if (!more->valid()) return Ok();
  *more = Fd(::fcntl(more->get(), F_DUPFD_CLOEXEC, kMoreInput));
  return more->get() == kMoreInput ? Ok() : Status(Errno("fcntl(F_DUPFD)"));
}

// Waits, in the agent's process, until the first process has seen to following it.
Status AwaitFollower(const Fd& socket) {
  // It may look into a process of its own user, if that does not object, as after a change of ids.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  TRY(sys::SendMessage(socket.get(), "ready"));
  TRY(sys::ReceiveMessage(socket.get(), kControlBytesMax, Deadline::Never()));
  return Ok();
}

// Asks the kernel, should memory run out, to kill this process and its children before those that
// serve them: the gateway and the sandbox's first process are often larger than each of these.
void OfferForMemory() {
  // After a change of ids the file is root's, unless the process is dumpable.
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  (void)::prctl(PR_SET_DUMPABLE, 1);
  Result<Fd> score = sys::Open("/proc/self/oom_score_adj", O_WRONLY);
  (void)::prctl(PR_SET_DUMPABLE, dumpable == 1 ? 1 : 0);
  if (score.ok()) (void)sys::WriteAll(score.value().get(), "1000");
}

}  // namespace

namespace {

// Both ends of a pipe are one inode. Where this process's user namespace lacks the id (EINVAL), the
// sandbox cannot have it either, and its start says so.
Status GivePipe(const SandboxPlan& plan, int fd) {
  bool given = !plan.as_root || ::fchown(fd, plan.host_uid, plan.host_gid) == 0;
  if (!given && errno != EINVAL) return Errno("giving the agent its streams");
  return Ok();
}

}  // namespace

Status GiveInput(const SandboxPlan& plan, const AgentInput& input) {
  return input.more.valid() ? GivePipe(plan, input.more.get()) : Ok();
}

Result<std::pair<Fd, Fd>> OpenStream(const SandboxPlan& plan) {
  auto [read, write] = TRY(sys::Pipe());
  TRY(GivePipe(plan, write.get()));
  // The agent can open this pipe by its name and take what its reader was told of.
  if (::fcntl(read.get(), F_SETFL, O_NONBLOCK) != 0) return Errno("fcntl(F_SETFL)");
  return std::pair(std::move(read), std::move(write));
}

Status BeginFirstProcess(AgentResources* resources, std::vector<Fd*> kept) {
  // Blocked before the first child exists: Reap() waits for it through a descriptor.
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &children, nullptr);
  // The kernel keeps a signal from the first process of a namespace only where its end is the
  // default one; with the runner's handlers, kill(1) would reach it. SIGPIPE stays ignored.
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGPIPE) ::signal(signal, SIG_DFL);
  }
  AgentInput& input = resources->input;
  for (Fd* fd : {&resources->control, &input.stream, &resources->output, &resources->error}) {
    kept.push_back(fd);
  }
  if (input.more.valid()) kept.push_back(&input.more);
  if (resources->programs.valid()) kept.push_back(&resources->programs);
  resources->groups.clear();
  TRY(ClearStreams(kept, &input.more));
  // Both are the runner's, and the agent can read them of this process.
  sys::WipeEnvironment();
  sys::WipeArguments();
  return Ok();
}

Status SetLimit(decltype(RLIMIT_CORE) resource, rlim_t value) {
  rlimit limit{value, value};
  rlimit now{};
  if (::getrlimit(resource, &now) == 0)
    limit.rlim_max = limit.rlim_cur = std::min(value, now.rlim_max);
  if (::setrlimit(resource, &limit) != 0) return Errno("setrlimit");
  return Ok();
}

Status LimitFileSize(const SandboxLimits& limits, int64_t bytes_max) {
  int64_t asked = limits.file_bytes;
  if (asked > 0 && (bytes_max == 0 || asked < bytes_max)) bytes_max = asked;
  if (bytes_max == 0) return Ok();
  return SetLimit(RLIMIT_FSIZE, static_cast<rlim_t>(bytes_max));
}

Status AgentProcess::SendFd(ControlKind kind, int fd) { return Send(wire::Write(kind), fd); }

Status AgentProcess::Send(std::string_view message, int fd) {
  return sys::SendMessage(resources_.control.get(), message, fd);
}

Status AgentProcess::Enter() {
  if (::setsid() < 0) return Errno("setsid");
  for (int fd = 0; fd < 3; ++fd) {
    const Fd& stream = fd == 0   ? resources_.input.stream
                       : fd == 1 ? resources_.output
                                 : resources_.error;
    if (::dup2(stream.get(), fd) < 0) return Errno("dup2");
  }
  if (resources_.input.more.valid() && ::fcntl(kMoreInput, F_SETFD, 0) != 0) return Errno("fcntl");
  // No core is larger than 1 byte, and no program of the host gets one: the filter's KeepCoreLimit.
  rlimit core{1, 1};
  if (::setrlimit(RLIMIT_CORE, &core) != 0) TRY(SetLimit(RLIMIT_CORE, 0));
  // The kernel counts them for each user, and what is started for root may count as root's.
  TRY(SetLimit(RLIMIT_SIGPENDING, kPendingSignals));
  // One process alone ends at once; what all of them use is added up from outside.
  if (plan_.limits.cpu_s > 0) {
    TRY(SetLimit(RLIMIT_CPU, static_cast<rlim_t>(plan_.limits.cpu_s) + 1));
  }
  ::umask(022);
  OfferForMemory();
  return Ok();
}

// execve, with PATH from the agent's own environment. Returns only when nothing could be executed.
Status AgentProcess::Execute() {
  std::vector<char*> argv;
  for (const std::string& word : plan_.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  std::string path;
  for (const std::string& entry : plan_.env) {
    envp.push_back(const_cast<char*>(entry.c_str()));
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  }
  envp.push_back(nullptr);

  // This comes at the last moment: the kernel compares it with how many descriptors all processes
  // of the user have under way in messages, and then sends none of this one's either
  // (ETOOMANYREFS).
  if (plan_.limits.open_files > 0) {
    TRY(SetLimit(RLIMIT_NOFILE, static_cast<rlim_t>(plan_.limits.open_files)));
  }
  const std::string& name = plan_.argv.front();
  if (name.find('/') != std::string::npos) {
    ::execve(name.c_str(), argv.data(), envp.data());
    return Errno(name);
  }
  int failure = ENOENT;
  for (size_t from = 0; from <= path.size();) {
    size_t colon = std::min(path.find(':', from), path.size());
    std::string candidate = path.substr(from, colon - from) + "/" + name;
    ::execve(candidate.c_str(), argv.data(), envp.data());
    if (errno != ENOENT && errno != ENOTDIR) failure = errno;
    from = colon + 1;
  }
  return Errno(name, failure);
}

Status AgentProcess::Start(const std::function<Status()>& confine) {
  auto [fault_read, fault_write] = TRY(sys::Pipe());
  std::pair<Fd, Fd> following;  // The agent's process's end, and this one's.
  if (programs_.wanted()) following = TRY(sys::SocketPair());
  pid_ = ::fork();
  if (pid_ < 0) return Errno("fork");
  if (pid_ == 0) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    following.second.Close();
    Status status = Enter();
    if (status.ok() && ::chdir(plan_.workdir.c_str()) != 0)
      status = Errno("chdir " + plan_.workdir);
    if (status.ok()) status = confine();
    if (status.ok() && programs_.wanted()) status = AwaitFollower(following.first);
    if (status.ok()) status = Execute();
    (void)sys::WriteAll(fault_write.get(), wire::Write(status.error()));
    ::_exit(127);
  }
  fault_write.Close();
  resources_.input.stream.Close();
  resources_.input.more.Close();
  resources_.output.Close();
  resources_.error.Close();
  following.first.Close();
  if (programs_.wanted()) Follow(following.second);
  // End of file: execve closed the other end.
  std::string fault = TRY(sys::ReadAll(fault_read.get(), kControlBytesMax));
  Error error;
  if (wire::Read(fault, error)) return error;
  if (!fault.empty()) return Error{Code::kIo, "the agent's process ended while starting"};
  return Ok();
}

// An agent that cannot be started does not ask for it: what it says instead is read later.
void AgentProcess::Follow(const Fd& socket) {
  if (!sys::ReceiveMessage(socket.get(), kControlBytesMax, Deadline::Never()).ok()) return;
  programs_.Follow(pid_);
  (void)sys::SendMessage(socket.get(), "followed");
}

void AgentProcess::Reap() {
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  sys::ReleaseUnusedMemory();
  Fd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
      if (!Take(pid, status)) continue;
      (void)sys::SendMessage(resources_.control.get(),
                             wire::Write(ControlKind::kEnded, status, TasksLeft() + 1));
      return;
    }
    pollfd entries[2] = {{signals.get(), POLLIN, 0}, {resources_.control.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0) return;  // The supervisor is gone; it says nothing else by now.
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof info) > 0) {
    }
  }
}

ProcessUsage AgentProcess::MeasureTasks() const {
  Result<Fd> processes = sys::Open("/proc", O_RDONLY | O_DIRECTORY);
  if (!processes.ok()) return {};
  std::optional<std::vector<pid_t>> started;
  if (plan_.shares_host()) started = Descendants(::getpid());
  return MeasureProcesses(processes.value().get(), started);
}

bool AgentProcess::ReapOthers(bool* ended) {
  int status = 0;
  pid_t pid = 0;
  for (*ended = false; (pid = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0; *ended = true) {
    Take(pid, status);
  }
  return pid == 0;
}

// The first process of a shell's fork bomb ends at once, and the limit is reached after that. A
// bash that is refused a child tries again a second later: many tasks are looked at for so long,
// and few for as long as one of them runs, since a busy machine lets them multiply slowly. If each
// task starts the next and ends, a look may find none that runs, or none at all; a child that ended
// shows that they are there. One look may take longer than kFewTime, so several have to be quiet.
int64_t AgentProcess::TasksLeft() {
  if (plan_.limits.pids <= 0) return 0;
  const int64_t own = plan_.shares_host() ? 0 : 1;  // This process.
  int64_t most = 0;
  const Deadline end = Deadline::After(kLooksTime);
  Deadline growth = end;
  int quiet = 0;  // Looks in a row that saw nothing change.
  for (bool ended = false; ReapOthers(&ended); ++quiet) {
    const ProcessUsage now = MeasureTasks();
    if (now.tasks > most || now.running > own || ended) {
      quiet = 0;
      most = std::max(most, now.tasks);
      growth = Deadline::After(2 * most < plan_.limits.pids ? kFewTime : kManyTime);
    }
    // A cgroup counts what it refuses, which comes next.
    if (plan_.counts_tasks && most >= plan_.limits.pids) break;
    if ((growth.passed() && quiet >= kQuietLooks) || end.passed()) break;
    std::this_thread::sleep_for(kLookPause);
  }
  return most;
}

void AgentProcess::Report(const Error& error) {
  (void)sys::SendMessage(resources_.control.get(), wire::Write(ControlKind::kFault, error));
}

}  // namespace sandbox
