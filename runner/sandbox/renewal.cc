// SPDX-License-Identifier: Apache-2.0
#include "sandbox/renewal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "base/sys.h"
#include "base/tree.h"
#include "base/wire.h"
#include "sandbox/agent_process.h"
#include "sandbox/control.h"
#include "sandbox/init.h"
#include "sandbox/limit/usage.h"

namespace sandbox {
namespace {

constexpr unsigned long kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

// A child of this process in the given namespaces, and otherwise in new ones: 0 in the child. A
// process between the two goes there, since nothing that has gone there comes back.
Result<pid_t> CloneInto(const Fd& user, const Fd& network) {
  auto [hears, tells] = TRY(sys::Pipe());
  pid_t between = ::fork();
  if (between < 0) return Errno("fork");
  if (between == 0) {
    long pid = -1;
    if (::setns(user.get(), CLONE_NEWUSER) == 0 && ::setns(network.get(), CLONE_NEWNET) == 0) {
      pid = ::syscall(SYS_clone, kNewNamespaces | CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr,
                      nullptr);
    }
    if (pid == 0) return 0;
    std::string told = wire::Write(static_cast<int64_t>(pid), pid < 0 ? errno : 0);
    (void)sys::WriteAll(tells.get(), told);
    ::_exit(0);
  }
  tells.Close();
  Result<std::string> told = sys::ReadAll(hears.get(), kControlBytesMax);
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  int64_t pid = -1;
  int failure = 0;
  if (!told.ok() || !wire::Read(told.value(), pid, failure)) {
    return Error{Code::kIo, "a process that starts the sandbox's next one was killed"};
  }
  if (pid < 0) return NamespaceRefused("clone", failure);
  return static_cast<pid_t>(pid);
}

}  // namespace

Result<Fd> OpenNamespace(pid_t pid, const std::string& kind) {
  return sys::Open("/proc/" + std::to_string(pid) + "/ns/" + kind, O_RDONLY);
}

void OwnedPid::Kill() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);  // This process's child: the number is not given out again.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool Sandbox::renewable() const { return user_.valid() && plan_ && !plan_->layers_on_disk; }

Result<Renewal> Sandbox::Renew(AgentInput input) {
  if (!renewable()) return Error{Code::kUnsupported, "this sandbox cannot be renewed in place"};
  closing_.Wait();  // The clone below has this thread alone.
  Deadline deadline = Deadline::After(kBuildTimeout);
  Renewal renewal;
  renewal.began = sys::FileTime(plan_->checkout);
  auto [ours, theirs] = TRY(sys::SocketPair());
  auto [output_read, output_write] = TRY(OpenStream(*plan_));
  auto [error_read, error_write] = TRY(OpenStream(*plan_));
  TRY(GiveInput(*plan_, input));
  InitResources resources;
  resources.renews = true;
  resources.opened = TRY(OpenSources(plan_.get()));
  bool pinned = Pins(cgroup_, plan_->limits);
  resources.processors = pinned ? Processors::kPinned : Processors::kFree;
  resources.agent = {std::move(theirs), std::move(input), std::move(output_write),
                     std::move(error_write), TRY(cgroup_.OpenTasks({"memory", "pids", "cpu"}))};
  pid_t pid = TRY(CloneInto(user_, network_));
  if (pid == 0) RunInit(*plan_, std::move(resources));
  sys::MoveAside(pid);
  renewal.init = OwnedPid(pid);
  renewal.pidfd = TRY(sys::PidfdOpen(pid));
  renewal.control = std::move(ours);
  renewal.output = std::move(output_read);
  renewal.error = std::move(error_read);
  resources = InitResources{};
  if (pinned) PinProcessors(pid, plan_->limits.cpus);
  TRY(sys::SendMessage(renewal.control.get(), wire::Write(ControlKind::kMapped)));
  TRY(cgroup_.Attach(pid));
  auto await = [&](ControlKind kind) { return Await(renewal.control.get(), kind, deadline); };
  renewal.segments = TRY(await(ControlKind::kSegments));
  renewal.upper = TRY(await(ControlKind::kUpper));
  renewal.layers = TRY(await(ControlKind::kLayers));
  renewal.processes = TRY(OpenProcesses(pid));
  renewal.mounts = TRY(OpenNamespace(pid, "mnt"));
  return renewal;
}

// Leaves a sixteenth of the memory, as one tree does (SandboxLimits::lasting), and a fifth of
// theirs for inodes.
int64_t Sandbox::RenewalRoom() {
  if (limits_.memory_bytes == 0) return limits_.disk_bytes;
  const DiskUsage used = Disk();
  const int64_t left = limits_.memory_bytes / 16 * 15 - used.bytes - used.inode_bytes;
  return std::clamp<int64_t>(left / 5 * 4, 0, limits_.disk_bytes);
}

Status Sandbox::Replace(Renewal renewal) {
  (void)DiskPeakBytes();  // Measures what goes now.
  Kill();
  connects_ = ConnectWatch();
  init_ = std::move(renewal.init);
  std::swap(pidfd_, renewal.pidfd);
  std::swap(control_, renewal.control);
  std::swap(output_, renewal.output);
  std::swap(error_, renewal.error);
  std::swap(upper_, renewal.upper);
  std::swap(layers_, renewal.layers);
  std::swap(processes_, renewal.processes);
  std::swap(segments_, renewal.segments);
  std::swap(mounts_, renewal.mounts);
  began_ = renewal.began;
  // Closing them makes the kernel take the tree apart, which takes longer the more files it has.
  auto old = std::make_shared<Renewal>(std::move(renewal));
  closing_ = sys::BackgroundTask([old] { const Renewal closed(std::move(*old)); });
  ForgiveMemory();
  return StartAgent();
}

Inside Sandbox::inside() const { return {plan_.get(), user_.get(), mounts_.get(), layers_.get()}; }

Inside Sandbox::InsideOf(const Renewal& renewal) const {
  return {plan_.get(), user_.get(), renewal.mounts.get(), renewal.layers.get()};
}

std::optional<std::vector<pid_t>> Sandbox::InnerProcesses() const {
  if (broker_) return std::nullopt;
  std::vector<pid_t> found;
  Result<std::vector<std::string>> names = sys::DirectoryNames(processes_.get());
  if (!names.ok()) return std::nullopt;
  for (const std::string& name : names.value()) {
    pid_t pid = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid > 1) found.push_back(pid);
  }
  return found;
}

}  // namespace sandbox
