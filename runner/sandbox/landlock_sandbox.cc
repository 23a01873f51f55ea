// SPDX-License-Identifier: Apache-2.0
#include "sandbox/landlock_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/privileges.h"
#include "base/sys.h"
#include "base/tree.h"
#include "base/user_namespace.h"
#include "base/wire.h"
#include "sandbox/agent_process.h"
#include "sandbox/call/other_sockets.h"
#include "sandbox/control.h"
#include "sandbox/landlock_init.h"
#include "sandbox/limit/descendants.h"
#include "sandbox/tree_copy.h"

namespace sandbox {
namespace {

// The time for init to kill all; it takes milliseconds.
constexpr std::chrono::seconds kEndTime{15};
constexpr int kListenBacklog = 512;

// Checks that the kernel has Landlock. The run ends with what the kernel says is missing, if it
// says that.
Status CheckKernel() {
  int why = 0;
  if (sys::landlock::Abi(&why) > 0) return Ok();
  if (why == EOPNOTSUPP) {
    return Error{Code::kUnsupported, "this kernel's Landlock is off", "boot with lsm=landlock,..."};
  }
  if (why == ENOSYS) {
    return Error{Code::kUnsupported, "this kernel has no Landlock (Linux 5.13)",
                 "boot Linux 5.13 or newer"};
  }
  return Error{Code::kUnsupported, std::string("Landlock is refused here: ") + ::strerror(why),
               sys::NamespaceRemedy()};
}

// A listening socket of 127.0.0.1, at any port.
Result<std::pair<Fd, uint16_t>> Listen() {
  Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!made.valid() || ::bind(made.get(), generic, size) != 0 ||
      ::listen(made.get(), kListenBacklog) != 0 || ::getsockname(made.get(), generic, &size) != 0) {
    return Errno("listening on 127.0.0.1");
  }
  return std::pair(std::move(made), static_cast<uint16_t>(ntohs(address.sin_port)));
}

// One file for the agent in the copy `top`, or its absence. Whatever stands in between, it stays
// there.
Status PutIntoCopy(const WorkspaceFile& file, int top, const std::optional<Owner>& owner) {
  size_t slash = file.path.rfind('/');
  std::string leaf = file.path.substr(slash == std::string::npos ? 0 : slash + 1);
  Fd above = TRY(sys::OpenAt(top, ".", O_RDONLY | O_DIRECTORY));
  for (size_t from = 0; slash != std::string::npos && from < slash;) {
    size_t end = file.path.find('/', from);
    std::string name = file.path.substr(from, end - from);
    bool made = !file.gone && ::mkdirat(above.get(), name.c_str(), 0755) == 0;
    if (!file.gone && !made && errno != EEXIST) return Errno("mkdir " + file.path);
    Result<Fd> next = sys::OpenAt(above.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!next.ok() && file.gone) return Ok();
    above = TRY(std::move(next));
    if (made && owner && ::fchown(above.get(), owner->uid, owner->gid) != 0) return Errno("fchown");
    from = end + 1;
  }
  bool removed = ::unlinkat(above.get(), leaf.c_str(), 0) == 0 || errno == ENOENT;
  if (file.gone) return removed ? Ok() : Status(Errno("hiding " + file.path));
  Fd made = TRY(sys::OpenAt(above.get(), leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  TRY(sys::WriteAll(made.get(), file.content.get()));
  if (owner && ::fchown(made.get(), owner->uid, owner->gid) != 0) return Errno("fchown");
  return Ok();
}

Status GiveTo(const std::string& path, const SandboxPlan& plan) {
  if (plan.as_root && ::lchown(path.c_str(), plan.host_uid, plan.host_gid) != 0) {
    return Errno("chown " + path);
  }
  return Ok();
}

// Writes a file whose directories are the agent's own: its program keeps more there.
Status WriteInHome(const std::string& home, const WorkspaceFile& file, const SandboxPlan& plan) {
  const std::string path = home + "/" + file.path;
  for (size_t slash = path.find('/', home.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    TRY(sys::MakeDirectories(directory, 0700));
    TRY(GiveTo(directory, plan));
  }
  TRY(sys::WriteFile(path, file.content.get(), 0644));
  return GiveTo(path, plan);
}

// Returns a time on the disk of `mark`, a new file, that is later than all that was changed there,
// and not later than what will be. That takes a tick of the disk's clock, of 10 ms at most; where a
// tick is longer, what was changed last may have this time, too.
Result<timespec> TimeAfter(const std::string& mark) {
  constexpr int kWaitsMax = 50;
  constexpr mode_t kMode = 0400;
  TRY(sys::WriteFile(mark, "", kMode));
  struct stat made {};
  if (::stat(mark.c_str(), &made) != 0) return Errno("stat " + mark);
  for (int i = 0; i < kWaitsMax; ++i) {
    struct stat now {};
    if (::chmod(mark.c_str(), kMode) != 0) return Errno("chmod " + mark);
    if (::stat(mark.c_str(), &now) != 0) return Errno("stat " + mark);
    if (std::pair(now.st_ctim.tv_sec, now.st_ctim.tv_nsec) >
        std::pair(made.st_ctim.tv_sec, made.st_ctim.tv_nsec)) {
      return now.st_ctim;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return made.st_ctim;
}

std::vector<Control> LandlockControls(const Cgroup& cgroup, const SandboxPlan& plan) {
  std::vector<Control> controls;
  int abi = sys::landlock::Abi();
  auto add = [&](ControlName name, bool enforced, std::string note) {
    controls.push_back(
        {name, enforced ? ControlState::kEnforced : ControlState::kEmulated, std::move(note)});
  };
  controls.push_back(
      {ControlName::kNamespaces, ControlState::kUnavailable, "tier landlock was asked for"});
  add(ControlName::kFiles, true,
      "Landlock ABI " + std::to_string(abi) +
          ": what the policy lists can be read, only the run's own directory written; names, sizes "
          "and times of other files can be seen");
  add(ControlName::kNetwork, true,
      "every socket is made by the supervisor, bound to loopback and connected to the gateway; "
      "only TCP and Unix sockets of files");
  add(ControlName::kCapture, true, "connections that bypass the proxy are captured and judged too");
  controls.push_back({ControlName::kTcpRules,
                      abi >= 4 ? ControlState::kEnforced : ControlState::kUnavailable,
                      abi >= 4 ? "no connection of the agent's own" : "needs ABI 4 (Linux 6.7)"});
  add(ControlName::kNames, false,
      "over TCP alone: programs that ask over UDP, as musl's, find none");
  if (plan.as_root) {
    add(ControlName::kSignals, true, "the agent's user has no other process");
  } else {
    add(ControlName::kSignals, abi >= 6,
        abi >= 6
            ? "Landlock's scope"
            : "not to the runner; other processes of this user can be signalled before Landlock "
              "ABI 6 (Linux 6.12)");
  }
  add(ControlName::kProcesses, false,
      "of other processes, what /proc shows to everyone can be seen: names, arguments, status, "
      "limits, cgroup, mounts and network; not their memory, environment or files");
  add(ControlName::kCapabilities, true, "none, and no_new_privs");
  add(ControlName::kSeccomp, true, "system-call filter");
  controls.push_back(
      {ControlName::kLandlock, ControlState::kEnforced, "ABI " + std::to_string(abi)});
  add(ControlName::kDisk, false, "the size of " + plan.shared_host().scratch + " is polled");
  std::string why = cgroup.why_not().empty() ? "no such controller" : cgroup.why_not();
  auto limited = [&](ControlName name, bool asked, const char* instead) {
    bool kernel = cgroup.enforces(std::string(TextOf(name)));
    if (asked) add(name, kernel, kernel ? "cgroup" : why + "; " + instead);
  };
  limited(
      ControlName::kMemory, plan.limits.memory_bytes > 0,
      "the memory of processes and sockets is polled; pipes, netlink sockets and kernel caches are "
      "not counted");
  limited(ControlName::kCpu, plan.limits.cpus > 0, "the run is pinned to whole CPUs");
  if (plan.as_root && !cgroup.enforces("pids")) {
    add(ControlName::kPids, true, "RLIMIT_NPROC of the agent's own user");
  } else {
    limited(ControlName::kPids, plan.limits.pids > 0,
            "processes are counted by polling, and RLIMIT_NPROC bounds those of the user");
  }
  AddProcessLimits(cgroup, plan.limits, &controls);
  return controls;
}

}  // namespace

Status LandlockSandbox::OpenLoopbackSockets() {
  auto [proxy, proxy_port] = TRY(Listen());
  auto [capture, capture_port] = TRY(Listen());
  broker_.proxy_port = proxy_port;
  broker_.capture_port = capture_port;
  gateway_sockets_.push_back({GatewaySocket::Kind::kProxy, std::move(proxy)});
  gateway_sockets_.push_back({GatewaySocket::Kind::kTransparent, std::move(capture)});
  return Ok();
}

Result<int64_t> LandlockSandbox::PrepareScratch(const SandboxPlan& plan) {
  const LandlockPlan& own = plan.shared_host();
  // Root's agent is another user, who has to get in; what it is not to see is closed to it.
  if (plan.as_root && ::fchmod(scratch_->fd(), 0755) != 0) return Errno("chmod " + own.scratch);
  Places places = PlacesIn(own.scratch);
  for (const std::string& path : {places.home, places.temporary, plan.workdir}) {
    if (::mkdir(path.c_str(), 0700) != 0) return Errno("mkdir " + path);
  }
  for (const WorkspaceFile& file : own.scratch_files) {
    TRY(sys::WriteFile(file.path, file.content.get(), 0444));
  }
  for (const WorkspaceFile& file : own.home_files) TRY(WriteInHome(places.home, file, plan));
  int64_t bytes = own.copies_checkout ? TRY(CopyWorkspace(plan)) : 0;
  for (const std::string& path : {places.home, places.temporary, plan.workdir}) {
    TRY(GiveTo(path, plan));
  }
  upper_ = TRY(sys::Open(plan.workdir, O_RDONLY | O_DIRECTORY));
  // The policy may hide the checkout: then there is no copy to compare it with.
  if (own.copies_checkout) copied_ = TRY(TimeAfter(own.scratch + "/copied"));
  return bytes;
}

Result<int64_t> LandlockSandbox::CopyWorkspace(const SandboxPlan& plan) {
  Fd from = TRY(sys::Open(plan.checkout, O_RDONLY | O_DIRECTORY));
  Fd to = TRY(sys::Open(plan.workdir, O_RDONLY | O_DIRECTORY));
  std::optional<Owner> owner;
  if (plan.as_root) owner = Owner{plan.host_uid, plan.host_gid};
  CopyLimits limits{plan.limits.disk_bytes, static_cast<int64_t>(InodesOf(plan.limits.disk_bytes)),
                    scratch_->fd()};
  Result<CopySum> copied = CopyTree(from.get(), to.get(), limits, owner, LogCopying());
  if (!copied.ok()) {
    Error error = std::move(copied).error();
    error.what = "copying the checkout: " + error.what;
    error.hint = "--disk SIZE, as large as the checkout, or TMPDIR=DIRECTORY with room for it";
    return error;
  }
  for (const std::string& path : plan.shared_host().not_copied) {
    std::string name = path.substr(plan.checkout.size() + 1);
    if (sys::ExistsAt(to.get(), name)) TRY(sys::RemoveTree(to.get(), name));
  }
  for (const WorkspaceFile& file : plan.workspace_files) TRY(PutIntoCopy(file, to.get(), owner));
  const CopySum& sum = copied.value();
  std::string note =
      "a copy: " + std::to_string(sum.files) + " files, " + std::to_string(sum.bytes) + " bytes";
  if (sum.left_out > 0) note += "; " + std::to_string(sum.left_out) + " left out";
  controls_.push_back({ControlName::kCheckout, ControlState::kEnforced, std::move(note)});
  return sum.bytes;
}

Result<std::unique_ptr<Sandbox>> LandlockSandbox::Start(SandboxPlan plan, AgentInput input,
                                                        Cgroup cgroup, HostResources around) {
  TRY(CheckKernel());
  std::unique_ptr<LandlockSandbox> made(new LandlockSandbox(std::move(cgroup), plan));
  LandlockSandbox& sandbox = *made;
  sandbox.scratch_.emplace(std::move(*around.scratch));
  sandbox.ids_ = {plan.host_uid, plan.host_gid, plan.as_root};
  const pid_t helper = sandbox.helper_ = around.helper;
  int64_t copied_bytes = TRY(sandbox.PrepareScratch(plan));
  sandbox.broker_ =
      BrokerSetup{.ids = sandbox.ids_, .writable = {}, .diagnostics = OpenSocketDiagnostics()};
  for (const LandlockRule& rule : plan.landlock) {
    if (rule.writable && rule.path.starts_with(plan.shared_host().scratch + "/")) {
      sandbox.broker_.writable.push_back(rule.path);
    }
  }
  TRY(sandbox.OpenLoopbackSockets());
  auto [ours, theirs] = TRY(sys::SocketPair());
  auto [output_read, output_write] = TRY(OpenStream(plan));
  auto [error_read, error_write] = TRY(OpenStream(plan));
  TRY(GiveInput(plan, input));
  plan.shared_host().pinned = plan.limits.cpus > 0 && !sandbox.cgroup_.enforces("cpu");
  std::vector<Fd> groups = TRY(sandbox.cgroup_.OpenTasks({"memory", "pids", "cpu"}));
  // The agent may have this process's id.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  // A process that is left without a parent comes to init; if that is killed, here.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Errno("prctl(PR_SET_CHILD_SUBREAPER)");
  pid_t supervisor = ::getpid();
  // The keeper of a sandbox that lasts; else the process that has started the run.
  pid_t keeper = ::getppid();
  pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) {
    RunLandlockInit(
        plan,
        {std::move(theirs), std::move(input), std::move(output_write), std::move(error_write),
         std::move(groups), std::move(around.programs)},
        keeper > 1 ? std::vector{supervisor, helper, keeper} : std::vector{supervisor, helper});
  }
  OwnedPid init(pid);
  Fd pidfd = TRY(sys::PidfdOpen(pid));
  sandbox.Adopt(std::move(init), std::move(pidfd),
                {std::move(ours), std::move(output_read), std::move(error_read)});
  TRY(sandbox.AddProcess(pid));
  sandbox.processes_ = TRY(sys::Open("/proc", O_RDONLY | O_DIRECTORY));
  sandbox.diagnostics_ = OpenSocketDiagnostics();
  sandbox.sockets_ = SocketMeter(OpenSocketDiagnostics(), plan.host_uid);
  Fd directory = TRY(sys::Open(plan.shared_host().scratch, O_RDONLY | O_DIRECTORY));
  sandbox.disk_ = DiskWatch(std::move(directory), plan.limits.disk_bytes + copied_bytes);
  for (Control& control : LandlockControls(sandbox.cgroup_, plan)) {
    sandbox.controls_.push_back(std::move(control));
  }
  sandbox.plan_ = std::make_unique<SandboxPlan>(std::move(plan));
  return std::unique_ptr<Sandbox>(std::move(made));
}

// Init kills all and ends; what it was kept from, this process does.
void LandlockSandbox::Kill() {
  if (!init_.valid()) return;
  (void)::shutdown(control_.get(), SHUT_WR);
  (void)sys::WaitReadable(pidfd_.get(), Deadline::After(kEndTime));
  init_.Kill();
  KillDescendants({helper_});
  // The broker may hold sockets of the agent's, and they what the agent has sent through them.
  connects_ = ConnectWatch();
}

std::string LandlockSandbox::StartMessage() { return wire::Write(ControlKind::kStartAgent); }

ConnectWatch LandlockSandbox::WatchOf(Fd listener) {
  return ConnectWatch(std::move(listener), std::make_unique<Broker>(std::move(broker_)));
}

std::optional<std::vector<pid_t>> LandlockSandbox::Members() const {
  return Descendants(init_.get());
}

// The agent's user may have other programs. Their sockets are excluded only if the
// total exceeds `left` bytes, since that takes a walk over every descriptor of every process.
int64_t LandlockSandbox::SocketBytes(int64_t left) {
  int64_t bytes = sockets_.Measure();
  if (bytes <= left || ids_.others) return bytes;
  return sockets_.Measure(SocketsOfOthers([this] { return Descendants(init_.get()); }));
}

Result<Fd> LandlockSandbox::OpenRoot() const {
  return sys::Open("/", O_PATH | O_DIRECTORY).Context("looking into the sandbox");
}

}  // namespace sandbox
