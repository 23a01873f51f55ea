// SPDX-License-Identifier: Apache-2.0
#include "sandbox/init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/privileges.h"
#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/control.h"
#include "sandbox/landlock.h"
#include "sandbox/network/network.h"
#include "sandbox/seccomp.h"
#include "sandbox/tree.h"

namespace sandbox {
namespace {

constexpr rlim_t kOpenFilesMax = 65536;  // Enough for every build tool; a bound all the same.

class Init {
 public:
  Init(const SandboxPlan& plan, InitResources resources)
      : plan_(plan), resources_(std::move(resources)) {}

  Status Build();
  Status StartAgent();
  // Until the agent or the supervisor ends.
  void Reap();
  void Report(const Error& error);

 private:
  // Tells the supervisor, with a descriptor or -1.
  Status Hand(ControlKind kind, int fd) {
    return sys::SendMessage(resources_.control.get(), wire::Write(kind), fd);
  }
  Status BecomeSandboxUser();
  Status OpenDoors();
  Status DropPrivileges();
  Result<Fd> Filter();  // The watch over connects, where there is one.
  Status Enter();       // In the agent's process: everything between fork and execve.
  Status Execute();

  const SandboxPlan& plan_;
  InitResources resources_;
  pid_t agent_ = -1;
};

// Ids before mounts: what is mounted belongs to whoever mounts it.
Status Init::BecomeSandboxUser() {
  // An ordinary user's own id is the sandbox's already. Root's is not mapped here, and what
  // geteuid() says of it (65534) may be the very id that is wanted.
  if (!plan_.as_root) return Ok();
  if (::setgroups(0, nullptr) != 0) return Errno("setgroups");
  if (::setresgid(plan_.inner_gid, plan_.inner_gid, plan_.inner_gid) != 0) {
    return Errno("setresgid");
  }
  if (::setresuid(plan_.inner_uid, plan_.inner_uid, plan_.inner_uid) != 0) {
    return Errno("setresuid");
  }
  return Ok();
}

Status Init::OpenDoors() {
  Network network = TRY(PrepareNetwork(kProxyAddress, kProxyPort, plan_.captured_ports));
  std::vector<Door::Kind> kinds;
  for (const Door& door : network.doors) kinds.push_back(door.kind);
  TRY(sys::SendMessage(resources_.control.get(),
                       wire::Write(ControlKind::kNetwork, kinds, network.waiver)));
  for (const Door& door : network.doors) TRY(Hand(ControlKind::kDoor, door.socket.get()));
  return Ok();
}

Status Init::Build() {
  TRY(BecomeSandboxUser());
  // After the ids changed, which clears it. The closed control socket says the same, later.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Errno("prctl(PR_SET_PDEATHSIG)");
  (void)::setsid();
  if (::sethostname("sandbox", 7) != 0) return Errno("sethostname");
  TRY(OpenDoors());
  Fd diagnostics = OpenSocketDiagnostics();
  TRY(Hand(ControlKind::kDiagnostics, diagnostics.get()));
  Fd sockets = OpenSocketDiagnostics();
  TRY(Hand(ControlKind::kSockets, sockets.get()));
  Result<Fd> segments = sys::Open("/proc/sysvipc/shm", O_RDONLY);
  TRY(Hand(ControlKind::kSegments, segments.ok() ? segments.value().get() : -1));
  Fd upper = TRY(BuildTree(plan_, std::move(resources_.disk), std::move(resources_.opened)));
  return Hand(ControlKind::kUpper, upper.get());
}

// Nothing of what follows needs a capability; nothing that is started can ever get one.
Status Init::DropPrivileges() {
  TRY(sys::ForgoNewPrivileges());
  return sys::DropCapabilities(0);
}

Status SetLimit(decltype(RLIMIT_CORE) resource, rlim_t value) {
  rlimit limit{value, value};
  rlimit now{};
  if (::getrlimit(resource, &now) == 0)
    limit.rlim_max = limit.rlim_cur = std::min(value, now.rlim_max);
  if (::setrlimit(resource, &limit) != 0) return Errno("setrlimit");
  return Ok();
}

Status Init::Enter() {
  if (::setsid() < 0) return Errno("setsid");
  for (int fd = 0; fd < 3; ++fd) {
    const Fd& stream = fd == 0 ? resources_.input : fd == 1 ? resources_.output : resources_.error;
    if (::dup2(stream.get(), fd) < 0) return Errno("dup2");
  }
  TRY(SetLimit(RLIMIT_CORE, 0));
  TRY(SetLimit(RLIMIT_NOFILE, kOpenFilesMax));
  // Where nothing else bounds a file that was deleted and is still written to.
  if (plan_.layers_on_disk) {
    TRY(SetLimit(RLIMIT_FSIZE, static_cast<rlim_t>(plan_.limits.disk_bytes)));
  }
  // Counted in this user namespace alone, the sandbox's first process with it. A cgroup, where
  // there is one, is met first: it counts what it refuses.
  if (plan_.limits.pids > 0) {
    TRY(SetLimit(RLIMIT_NPROC, static_cast<rlim_t>(plan_.limits.pids) + 1));
  }
  ::umask(022);
  if (::chdir(plan_.workdir.c_str()) != 0) return Errno("chdir " + plan_.workdir);
  TRY(DropPrivileges());
  Fd ruleset = TRY(BuildLandlock(plan_.landlock, plan_.landlock_required));
  if (ruleset.valid()) TRY(sys::landlock::Restrict(ruleset.get()));
  // Landlock before seccomp: the filter forbids calls that opening the rules' paths may need.
  Fd watch = TRY(Filter());
  return Hand(ControlKind::kWatch, watch.get());
}

Result<Fd> Init::Filter() {
  if (!resources_.watched_filter.empty()) {
    Result<Fd> watch = ApplyFilter(resources_.watched_filter, Connects::kWatched);
    if (watch.ok()) return watch;
  }
  return ApplyFilter(resources_.filter, Connects::kFree);
}

// execve, with PATH from the agent's own environment. Returns only when nothing could be executed.
Status Init::Execute() {
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

Status Init::StartAgent() {
  auto [fault_read, fault_write] = TRY(sys::Pipe());
  agent_ = ::fork();
  if (agent_ < 0) return Errno("fork");
  if (agent_ == 0) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    Status status = Enter();
    if (status.ok()) status = Execute();
    (void)sys::WriteAll(fault_write.get(), wire::Write(status.error()));
    ::_exit(127);
  }
  fault_write.Close();
  resources_.input.Close();
  resources_.output.Close();
  resources_.error.Close();
  // End of file: execve closed the other end.
  std::string fault = TRY(sys::ReadAll(fault_read.get(), kControlBytesMax));
  Error error;
  if (wire::Read(fault, error)) return error;
  if (!fault.empty()) return Error{Code::kIo, "the agent's process ended while starting"};
  TRY(DropPrivileges());
  // The agent runs under the same id: it shall not look into this process.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  return Hand(ControlKind::kStarted, -1);
}

void Init::Reap() {
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  Fd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != agent_) continue;
      (void)sys::SendMessage(resources_.control.get(), wire::Write(ControlKind::kEnded, status));
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

void Init::Report(const Error& error) {
  (void)sys::SendMessage(resources_.control.get(), wire::Write(ControlKind::kFault, error));
}

bool Expect(int socket, ControlKind kind) {
  Result<sys::Message> received = sys::ReceiveMessage(socket, kControlBytesMax, Deadline::Never());
  return received.ok() && received.value().bytes == wire::Write(kind);
}

// The agent's streams are put in place by number, so nothing else may stand at 0, 1 and 2: neither
// a hand of ours nor, later, a pipe that happened to get the lowest free number.
Status ClearStandardStreams(InitResources* resources) {
  std::vector<Fd*> kept = {&resources->control, &resources->input, &resources->output,
                           &resources->error, &resources->disk.tree};
  for (Fd& opened : resources->opened) kept.push_back(&opened);
  std::vector<int> numbers;
  for (Fd* fd : kept) {
    if (fd->valid() && fd->get() <= STDERR_FILENO) {
      *fd = Fd(::fcntl(fd->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    }
    numbers.push_back(fd->get());
  }
  sys::CloseAllExcept(numbers);
  return sys::FillStandardStreams();
}

}  // namespace

void RunInit(const SandboxPlan& plan, InitResources resources) {
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
  if (!ClearStandardStreams(&resources).ok()) ::_exit(1);
  int control = resources.control.get();
  // Both are the runner's, and the agent can read them of this process.
  sys::WipeEnvironment();
  sys::WipeArguments();

  Init init(plan, std::move(resources));
  if (!Expect(control, ControlKind::kMapped)) ::_exit(1);
  Status status = init.Build();
  if (status.ok()) {
    if (!Expect(control, ControlKind::kGo)) ::_exit(1);
    status = init.StartAgent();
  }
  if (!status.ok()) {
    init.Report(status.error());
    ::_exit(1);
  }
  init.Reap();
  ::_exit(0);
}

}  // namespace sandbox
