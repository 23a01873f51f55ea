// SPDX-License-Identifier: Apache-2.0
#include "sandbox/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "base/log.h"
#include "base/privileges.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/tree.h"
#include "base/wire.h"
#include "codec/text/shell_word.h"
#include "sandbox/agent_process.h"
#include "sandbox/control.h"
#include "sandbox/filter/seccomp.h"
#include "sandbox/init.h"
#include "sandbox/limit/usage.h"
#include "sandbox/namespace_probe.h"
#include "sandbox/renewal.h"
#include "sandbox/tree_copy.h"
#include "sandbox/user_namespace.h"

namespace sandbox {
namespace {

constexpr uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
struct Child {
  pid_t pid = -1;
  Fd pidfd;
};

// Like fork, into new namespaces. Docker's default filter answers clone3 with ENOSYS, hence clone.
Result<Child> Clone(uint64_t flags) {
  int raw_pidfd = -1;
  clone_args arguments{};
  arguments.flags = flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(&raw_pidfd);
  arguments.exit_signal = SIGCHLD;
  long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0 && errno == ENOSYS) {
    pid =
        ::syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, nullptr, &raw_pidfd, nullptr, nullptr);
  }
  if (pid < 0) return NamespaceRefused("clone3(CLONE_NEWUSER)", errno);
  Child child;
  child.pid = static_cast<pid_t>(pid);
  if (pid > 0) child.pidfd = Fd(raw_pidfd);
  return child;
}

// Returns whether others than its owner may read what is mounted at `tree`.
bool IsReadableByAll(int tree) {
  struct stat facts {};
  mode_t wanted = S_IROTH | (::fstat(tree, &facts) == 0 && S_ISDIR(facts.st_mode) ? S_IXOTH : 0);
  return (facts.st_mode & wanted) == wanted;
}

// Clones what stands at `path`, with all that is mounted in it, as a mount that stands nowhere yet.
Result<Fd> CloneTree(const std::string& path) {
  Fd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, path.c_str(),
                                     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
  if (tree.valid()) return tree;
  // Root without its rights, as in a container: it cannot guard anybody.
  Error error = Errno("open_tree " + path);
  error.code = Code::kUnsupported;
  error.hint = RootRemedy();
  return error;
}

// The bytes of one that has every connect(2) watched; empty if none can be built.
std::string BuildWatchedFilter(Processors processors, Owners owners) {
  Result<std::vector<sock_filter>> filter =
      BuildFilter(Connects::kWatched, processors, nullptr, owners);
  if (!filter.ok()) return {};
  return {reinterpret_cast<const char*>(filter.value().data()),
          filter.value().size() * sizeof(sock_filter)};
}

// The step's source as a mount of its own, opened with the runner's rights: the sandbox's user need
// not be able to walk the path to it. kMapped: ids are the owner's to the disk and the sandbox's to
// the agent; `ids` holds a user namespace for each owner there was.
Result<Fd> OpenSource(const MountStep& step, const SandboxPlan& plan, std::map<uid_t, Fd>* ids) {
  Fd tree = TRY(CloneTree(step.source));
  bool shown = step.or_unmapped || step.kind == MountStep::Kind::kShown ||
               step.kind == MountStep::Kind::kBind;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (step.from == MountStep::Source::kMapped) {
    Fd& map = (*ids)[step.owner];
    if (!map.valid()) {
      map = TRY(OpenUserNamespace({step.owner, plan.host_uid}, {step.owner, plan.host_gid}));
    }
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(map.get());
  }
  auto set_attributes = [&] {
    return ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                     sizeof attributes) == 0;
  };
  bool set = set_attributes();
  if (!set && shown && IsReadableByAll(tree.get())) {
    // A container's root, for one, is a file system whose ids cannot be mapped.
    attributes.attr_set &= ~static_cast<uint64_t>(MOUNT_ATTR_IDMAP);
    attributes.userns_fd = 0;
    set = set_attributes();
  }
  if (!set) {
    Error error = Errno("id-mapping " + step.source);
    error.code = Code::kUnsupported;
    error.hint = "chown -R 1000:1000 " + codec::ShellArgument(step.source);
    return error;
  }
  return tree;
}

// Lists the controls of tier namespaces. `scratch` is the directory on disk of the writable layers,
// or empty; `waiver` says why not every connection is captured, or is empty.
std::vector<Control> ListControls(const Cgroup& cgroup, const SandboxPlan& plan,
                                  const std::string& scratch, const std::string& waiver) {
  std::vector<Control> controls;
  auto add = [&](ControlName name, ControlState state, std::string note) {
    controls.push_back({name, state, std::move(note)});
  };
  add(ControlName::kNamespaces, ControlState::kEnforced, "user, mount, pid, net, ipc, uts, cgroup");
  add(ControlName::kRootFileSystem, ControlState::kEnforced,
      "only what the policy lists, read-only; credentials are hidden");
  add(ControlName::kNetwork, ControlState::kEnforced,
      "loopback only; the gateway is the only way out");
  if (waiver.empty()) {
    add(ControlName::kCapture, ControlState::kEnforced,
        "connections that bypass the proxy are captured and judged too");
  } else {
    add(ControlName::kCapture, ControlState::kEmulated,
        "only on the policy's ports; other connections fail and are not recorded: " + waiver);
  }
  add(ControlName::kCapabilities, ControlState::kEnforced, "none, and no_new_privs");
  add(ControlName::kSeccomp, ControlState::kEnforced, "system-call filter");
  int abi = sys::landlock::Abi();
  add(ControlName::kLandlock, abi > 0 ? ControlState::kEnforced : ControlState::kUnavailable,
      abi > 0 ? "ABI " + std::to_string(abi) : "this kernel does not support Landlock");
  if (scratch.empty()) {
    add(ControlName::kDisk, ControlState::kEnforced, "size of the writable layers");
  } else {
    add(ControlName::kDisk, ControlState::kEmulated,
        "the size of the writable layers, in " + scratch + ", is polled");
  }
  std::string why = cgroup.why_not().empty() ? "no such controller" : cgroup.why_not();
  auto limited = [&](ControlName name, bool asked, const std::string& instead) {
    if (!asked) return;
    bool kernel = cgroup.enforces(std::string(TextOf(name)));
    add(name, kernel ? ControlState::kEnforced : ControlState::kEmulated,
        kernel ? "cgroup" : why + "; " + instead);
  };
  limited(ControlName::kMemory, plan.limits.memory_bytes > 0,
          "the memory of processes, files and sockets is polled; pipes, netlink sockets, System V "
          "messages and semaphores, and kernel caches are not counted");
  limited(ControlName::kCpu, plan.limits.cpus > 0, "the run is pinned to whole CPUs");
  if (cgroup.enforces("pids")) {
    add(ControlName::kPids, ControlState::kEnforced, "cgroup");
  } else {
    add(ControlName::kPids, ControlState::kEnforced,
        "RLIMIT_NPROC in the sandbox's user namespace");
  }
  AddProcessLimits(cgroup, plan.limits, &controls);
  return controls;
}

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

// Why not every connection is captured, or nothing.
Result<std::string> NamespaceSandbox::AwaitGatewaySockets(Deadline deadline) {
  std::vector<GatewaySocket::Kind> kinds;
  std::string waiver;
  TRY(Await(control_.get(), ControlKind::kNetwork, deadline, kinds, waiver));
  for (GatewaySocket::Kind kind : kinds) {
    Fd socket = TRY(Await(control_.get(), ControlKind::kGatewaySocket, deadline));
    gateway_sockets_.push_back({kind, std::move(socket)});
  }
  return waiver;
}

// Root's sandbox has another user than root, who cannot enter the directory by its path.
Result<DiskLayers> NamespaceSandbox::MakeDiskLayers(const SandboxPlan& plan) {
  scratch_.emplace(TRY(
      ScratchDirectory::Make(plan.namespaces().scratch_places, ScratchDirectory::Use::kLayers)));
  DiskLayers layers;
  layers.path = scratch_->path() + "/layers";
  if (::mkdir(layers.path.c_str(), 0755) != 0) return Errno("mkdir " + layers.path);
  Fd directory = TRY(sys::Open(layers.path, O_RDONLY | O_DIRECTORY));
  disk_ = DiskWatch(std::move(directory), plan.limits.disk_bytes);
  if (!plan.as_root) return layers;
  if (::chown(layers.path.c_str(), plan.host_uid, plan.host_gid) != 0) {
    return Errno("chown " + layers.path);
  }
  layers.tree = TRY(CloneTree(layers.path));
  return layers;
}

// The copy takes the checkout's place in the plan: a directory of the sandbox's user, without
// mounts.
Status NamespaceSandbox::CopyCheckout(const std::string& why, SandboxPlan* plan) {
  NamespacePlan& own = plan->namespaces();
  if (!own.probes) logging::Info("the checkout is copied", {{"why", why}});
  if (!scratch_) {
    scratch_.emplace(
        TRY(ScratchDirectory::Make(own.scratch_places, ScratchDirectory::Use::kFiles)));
  }
  std::string place = scratch_->path() + "/checkout";
  if (::mkdir(place.c_str(), 0755) != 0) return Errno("mkdir " + place);
  Fd from = TRY(sys::Open(plan->checkout, O_RDONLY | O_DIRECTORY));
  Fd to = TRY(sys::Open(place, O_RDONLY | O_DIRECTORY));
  std::optional<Owner> owner;
  if (plan->as_root) owner = Owner{plan->host_uid, plan->host_gid};
  CopyLimits limits{plan->limits.disk_bytes,
                    static_cast<int64_t>(InodesOf(plan->limits.disk_bytes)), scratch_->fd()};
  Result<CopySum> copied = CopySum();
  if (!own.probes) copied = CopyTree(from.get(), to.get(), limits, owner, LogCopying());
  if (!copied.ok()) {
    Error error = std::move(copied).error();
    error.what = "copying the checkout (" + why + "): " + error.what;
    error.hint = "--disk SIZE, as large as the checkout, or TMPDIR=DIRECTORY with room for it";
    return error;
  }
  if (owner && ::fchown(to.get(), owner->uid, owner->gid) != 0) return Errno("fchown " + place);
  const CopySum& sum = copied.value();
  std::string note = "a copy is the workspace's lower layer (" + why +
                     "): " + std::to_string(sum.files) + " files, " + std::to_string(sum.bytes) +
                     " bytes";
  if (sum.left_out > 0) note += "; " + std::to_string(sum.left_out) + " left out";
  if (own.probes) note = "is copied by each run: " + why;
  controls_.push_back({ControlName::kCheckout,
                       own.probes ? ControlState::kEmulated : ControlState::kEnforced,
                       std::move(note)});
  for (MountStep& step : own.mounts) {
    if (step.kind != MountStep::Kind::kWorkspace) continue;
    step.source = place;
    step.from = plan->as_root ? MountStep::Source::kOpened : MountStep::Source::kPath;
  }
  return Ok();
}

Result<std::vector<Fd>> NamespaceSandbox::OpenSources(SandboxPlan* plan) {
  std::vector<Fd> opened;
  for (const MountStep& step : plan->namespaces().mounts) {
    if (step.from == MountStep::Source::kPath) continue;
    Result<Fd> source = OpenSource(step, *plan, &id_maps_);
    bool maps = step.kind == MountStep::Kind::kWorkspace && step.from == MountStep::Source::kMapped;
    if (!source.ok() && maps) {
      // Overlayfs, NFS, FUSE, and tmpfs before Linux 6.3 do not map ids.
      TRY(CopyCheckout(source.error().what, plan));
      source = OpenSource(step, *plan, &id_maps_);
    }
    opened.push_back(TRY(std::move(source)));
  }
  return opened;
}

Result<std::unique_ptr<Sandbox>> NamespaceSandbox::Start(SandboxPlan plan, AgentInput input,
                                                         Cgroup cgroup, Fd programs) {
  const NamespacePlan& own = plan.namespaces();
  // Asked of no mount: the answer only says whether the kernel knows the call.
  if (::syscall(SYS_mount_setattr, -1, "", 0, nullptr, 0) != 0 && errno == ENOSYS) {
    return Error{Code::kUnsupported, "tier namespaces needs Linux 5.12 (mount_setattr)",
                 "boot Linux 5.13 or newer"};
  }
  Deadline deadline = Deadline::After(kBuildTimeout);
  std::unique_ptr<NamespaceSandbox> made(new NamespaceSandbox(std::move(cgroup), plan));
  NamespaceSandbox& sandbox = *made;
  auto [ours, theirs] = TRY(sys::SocketPair());
  auto [output_read, output_write] = TRY(OpenStream(plan));
  auto [error_read, error_write] = TRY(OpenStream(plan));
  TRY(GiveInput(plan, input));
  InitResources resources;
  if (own.layers_on_disk) resources.disk = TRY(sandbox.MakeDiskLayers(plan));
  if (!own.copy_reason.empty()) TRY(sandbox.CopyCheckout(own.copy_reason, &plan));
  resources.opened = TRY(sandbox.OpenSources(&plan));
  bool pinned = Pins(sandbox.cgroup_, plan.limits);
  const Processors processors = pinned ? Processors::kPinned : Processors::kFree;
  resources.processors = processors;
  resources.agent = {std::move(theirs),
                     std::move(input),
                     std::move(output_write),
                     std::move(error_write),
                     TRY(sandbox.cgroup_.OpenTasks({"memory", "pids", "cpu"})),
                     std::move(programs)};

  Child child = TRY(Clone(kNamespaces));
  if (child.pid == 0) RunInit(plan, std::move(resources));
  sys::MoveAside(child.pid);
  sandbox.Adopt(OwnedPid(child.pid), std::move(child.pidfd),
                {std::move(ours), std::move(output_read), std::move(error_read)});
  resources = InitResources{};  // Our copies: a pipe ends when the last writer is gone.
  TRY(MapIds(child.pid, {plan.inner_uid, plan.host_uid}, {plan.inner_gid, plan.host_gid},
             plan.as_root));
  if (pinned) PinProcessors(child.pid, plan.limits.cpus);
  TRY(sys::SendMessage(sandbox.control_.get(), wire::Write(ControlKind::kMapped)));
  // While init builds, since these take their time. The agent does not exist before StartAgent().
  TRY(sandbox.cgroup_.Attach(child.pid));
  if (own.watched)
    sandbox.watched_filter_ =
        BuildWatchedFilter(processors, own.owns_system ? Owners::kFaked : Owners::kKernel);
  std::string waiver = TRY(sandbox.AwaitGatewaySockets(deadline));
  auto await = [&](ControlKind kind) { return Await(sandbox.control_.get(), kind, deadline); };
  sandbox.diagnostics_ = TRY(await(ControlKind::kDiagnostics));
  Fd sockets = TRY(await(ControlKind::kSockets));
  sandbox.sockets_ = SocketMeter(std::move(sockets));
  sandbox.segments_ = TRY(await(ControlKind::kSegments));
  sandbox.upper_ = TRY(await(ControlKind::kUpper));
  sandbox.layers_ = TRY(await(ControlKind::kLayers));
  Result<Fd> processes = OpenProcesses(child.pid);
  if (!processes.ok()) {
    Error error = std::move(processes).error();
    if (error.code == Code::kUnsupported) error.hint = RootRemedy();
    return error;
  }
  sandbox.processes_ = std::move(processes).value();
  sandbox.user_ = TRY(OpenNamespace(child.pid, "user"));
  sandbox.network_ = TRY(OpenNamespace(child.pid, "net"));
  sandbox.mounts_ = TRY(OpenNamespace(child.pid, "mnt"));
  std::string scratch = own.layers_on_disk ? sandbox.scratch_->path() : "";
  for (Control& control : ListControls(sandbox.cgroup_, plan, scratch, waiver)) {
    sandbox.controls_.push_back(std::move(control));
  }
  sandbox.plan_ = std::make_unique<SandboxPlan>(std::move(plan));
  return std::unique_ptr<Sandbox>(std::move(made));
}

void NamespaceSandbox::Kill() {
  if (!init_.valid()) return;
  // Killing pid 1 of a pid namespace kills all of it; the wait returns when all of it is gone.
  init_.Kill();
  connects_.EndRenames();
  connects_ = ConnectWatch();
}

std::string NamespaceSandbox::StartMessage() {
  return wire::Write(ControlKind::kStartAgent, watched_filter_);
}

int64_t NamespaceSandbox::SegmentBytes() const { return MeasureDetachedSegments(segments_.get()); }

Result<Fd> NamespaceSandbox::OpenRoot() const { return OpenRootOf(init_.get()); }

Result<Renewal> NamespaceSandbox::Renew(AgentInput input) {
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

Status NamespaceSandbox::Replace(Renewal renewal) {
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

std::optional<std::vector<pid_t>> NamespaceSandbox::InnerProcesses() const {
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
