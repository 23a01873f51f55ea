// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/privileges.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/wire.h"
#include "codec/text/shell_word.h"
#include "sandbox/agent_process.h"
#include "sandbox/call/other_sockets.h"
#include "sandbox/control.h"
#include "sandbox/filter/seccomp.h"
#include "sandbox/init.h"
#include "sandbox/inside.h"
#include "sandbox/limit/descendants.h"
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
std::string BuildWatchedFilter(Processors processors) {
  Result<std::vector<sock_filter>> filter = BuildFilter(Connects::kWatched, processors);
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

}  // namespace

bool Pins(const Cgroup& cgroup, const SandboxLimits& limits) {
  return limits.cpus > 0 && !cgroup.enforces("cpu");
}

void PinProcessors(pid_t pid, double cpus) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  int left = static_cast<int>(cpus) + (cpus > static_cast<int>(cpus) ? 1 : 0);
  for (int cpu = 0; cpu < CPU_SETSIZE && left > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &chosen);
    --left;
  }
  (void)::sched_setaffinity(pid, sizeof chosen, &chosen);
}

// Why not every connection is captured, or nothing.
Result<std::string> Sandbox::AwaitGatewaySockets(Deadline deadline) {
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
Result<DiskLayers> Sandbox::MakeDiskLayers(const SandboxPlan& plan) {
  scratch_.emplace(
      TRY(ScratchDirectory::Make(plan.scratch_places, ScratchDirectory::Use::kLayers)));
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
Status Sandbox::CopyCheckout(const std::string& why, SandboxPlan* plan) {
  if (!plan->probes) logging::Info("the checkout is copied", {{"why", why}});
  if (!scratch_) {
    scratch_.emplace(
        TRY(ScratchDirectory::Make(plan->scratch_places, ScratchDirectory::Use::kFiles)));
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
  if (!plan->probes) copied = CopyTree(from.get(), to.get(), limits, owner, LogCopying());
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
  if (plan->probes) note = "is copied by each run: " + why;
  controls_.push_back({ControlName::kCheckout,
                       plan->probes ? ControlState::kEmulated : ControlState::kEnforced,
                       std::move(note)});
  for (MountStep& step : plan->mounts) {
    if (step.kind != MountStep::Kind::kWorkspace) continue;
    step.source = place;
    step.from = plan->as_root ? MountStep::Source::kOpened : MountStep::Source::kPath;
  }
  return Ok();
}

Result<std::vector<Fd>> Sandbox::OpenSources(SandboxPlan* plan) {
  std::vector<Fd> opened;
  for (const MountStep& step : plan->mounts) {
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

Result<Sandbox> Sandbox::Start(SandboxPlan plan, AgentInput input, HostResources around) {
  Cgroup cgroup = around.cgroup ? std::move(*around.cgroup) : Cgroup::Create(plan.limits);
  plan.counts_tasks = plan.limits.pids > 0 && !cgroup.enforces("pids");
  if (plan.isolation == Isolation::kNamespaces) {
    return StartInNamespaces(std::move(plan), std::move(input), std::move(cgroup),
                             std::move(around.programs));
  }
  ENSURE(around.scratch.has_value());
  return StartByLandlock(std::move(plan), std::move(input), around.helper,
                         std::move(*around.scratch), std::move(cgroup), std::move(around.programs));
}

Result<Sandbox> Sandbox::StartInNamespaces(SandboxPlan plan, AgentInput input, Cgroup cgroup, Fd programs) {
  // Asked of no mount: the answer only says whether the kernel knows the call.
  if (::syscall(SYS_mount_setattr, -1, "", 0, nullptr, 0) != 0 && errno == ENOSYS) {
    return Error{Code::kUnsupported, "tier namespaces needs Linux 5.12 (mount_setattr)",
                 "boot Linux 5.13 or newer"};
  }
  Deadline deadline = Deadline::After(kBuildTimeout);
  Sandbox sandbox(std::move(cgroup), plan);
  auto [ours, theirs] = TRY(sys::SocketPair());
  auto [output_read, output_write] = TRY(OpenStream(plan));
  auto [error_read, error_write] = TRY(OpenStream(plan));
  TRY(GiveInput(plan, input));
  InitResources resources;
  if (plan.layers_on_disk) resources.disk = TRY(sandbox.MakeDiskLayers(plan));
  if (!plan.copy_reason.empty()) TRY(sandbox.CopyCheckout(plan.copy_reason, &plan));
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
  sandbox.init_ = OwnedPid(child.pid);
  sandbox.pidfd_ = std::move(child.pidfd);
  sandbox.control_ = std::move(ours);
  sandbox.output_ = std::move(output_read);
  sandbox.error_ = std::move(error_read);
  resources = InitResources{};  // Our copies: a pipe ends when the last writer is gone.
  TRY(MapIds(child.pid, {plan.inner_uid, plan.host_uid}, {plan.inner_gid, plan.host_gid},
             plan.as_root));
  if (pinned) PinProcessors(child.pid, plan.limits.cpus);
  TRY(sys::SendMessage(sandbox.control_.get(), wire::Write(ControlKind::kMapped)));
  // While init builds, since these take their time. The agent does not exist before StartAgent().
  TRY(sandbox.cgroup_.Attach(child.pid));
  if (plan.watched) sandbox.watched_filter_ = BuildWatchedFilter(processors);
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
  std::string scratch = plan.layers_on_disk ? sandbox.scratch_->path() : "";
  for (Control& control : ListControls(sandbox.cgroup_, plan, scratch, waiver)) {
    sandbox.controls_.push_back(std::move(control));
  }
  sandbox.plan_ = std::make_unique<SandboxPlan>(std::move(plan));
  return sandbox;
}

Sandbox::~Sandbox() { Kill(); }

void Sandbox::RemoveTraces() const {
  cgroup_.Remove();
  if (scratch_) scratch_->Remove();
}

Status Sandbox::AddProcess(pid_t pid) const {
  if (Pins(cgroup_, limits_)) PinProcessors(pid, limits_.cpus);
  return cgroup_.Attach(pid);
}

Status Sandbox::StartAgent() {
  TRY(sys::SendMessage(control_.get(),
                       broker_ ? wire::Write(ControlKind::kStartAgent)
                               : wire::Write(ControlKind::kStartAgent, watched_filter_)));
  Fd watch = TRY(Await(control_.get(), ControlKind::kWatch, Deadline::After(kBuildTimeout)));
  connects_ = broker_
                  ? ConnectWatch(std::move(watch), std::make_unique<Broker>(std::move(*broker_)))
                  : ConnectWatch(std::move(watch));
  Result<Fd> started = Await(control_.get(), ControlKind::kStarted, Deadline::After(kBuildTimeout));
  // A quick agent can reach the limit of memory before the first process has said that it started,
  // and the kernel may choose that process to end. Then there is no end to take, and a reached
  // limit.
  bool reached = cgroup_.OutOfMemoryKills().value_or(0) > forgiven_kills_;
  if (!started.ok() && !reached) return std::move(started).error();
  return Ok();
}

std::optional<int> Sandbox::TakeEnd() {
  Result<sys::Message> message = sys::ReceiveMessage(control_.get(), kControlBytesMax,
                                                     Deadline::After(std::chrono::milliseconds(0)));
  ControlKind kind{};
  int status = 0;
  int64_t tasks = 0;
  bool read = message.ok() && wire::Read(message.value().bytes, kind, status, tasks);
  if (read) tasks_at_end_ = tasks;
  return read && kind == ControlKind::kEnded ? std::optional<int>(status) : std::nullopt;
}

std::optional<Connect> Sandbox::TakeConnect(short events) {
  MoverPlace place;
  place.attach = [this](pid_t pid) { return cgroup_.Attach(pid); };
  place.enter = [this](std::vector<Fd*> kept) -> Status {
    {  // Enter() closes what it does not keep.
      std::vector<Fd> groups = TRY(cgroup_.OpenTasks({"memory", "cpu"}));
      TRY(JoinCgroups(groups));
    }
    return Enter(inside(), Rights::kAgent, std::move(kept));
  };
  return connects_.Take(events, place);
}

void Sandbox::Kill() {
  if (!init_.valid()) return;
  if (broker_) return KillByInit();
  // Killing pid 1 of a pid namespace kills all of it; the wait returns when all of it is gone.
  init_.Kill();
  connects_.EndRenames();
  connects_ = ConnectWatch();
}

int64_t Sandbox::MemoryBytes(const ProcessUsage& used, const DiskUsage& disk) {
  int64_t known = used.own_bytes + MeasureDetachedSegments(segments_.get());
  if (!disk_.valid()) known += disk.bytes + disk.inode_bytes;
  known += SocketBytes(limits_.memory_bytes - known - used.shared_bytes);
  if (known + used.shared_bytes <= limits_.memory_bytes) return known + used.shared_bytes;
  return known + SharedBytes();
}

// In tier landlock the agent's user may have other programs. Their sockets are excluded only if the
// total exceeds `left` bytes, since that takes a walk over every descriptor of every process.
int64_t Sandbox::SocketBytes(int64_t left) {
  int64_t bytes = sockets_.Measure();
  if (bytes <= left || !broker_ || ids_.others) return bytes;
  return sockets_.Measure(SocketsOfOthers([this] { return Descendants(init_.get()); }));
}

std::optional<std::chrono::nanoseconds> Sandbox::ProcessorTime(const AddedUsage& added) {
  if (limits_.cpu_s == 0) return std::nullopt;
  std::optional<std::chrono::nanoseconds> counted = cgroup_.ProcessorTime();
  std::chrono::nanoseconds used = processor_time_;
  if (counted) {
    used = *counted - added.processor_time;
  } else if (init_.valid()) {
    used = MeasureProcessorTime(processes_.get(), Members());
  }
  processor_time_ = std::max(processor_time_, used);
  return processor_time_;
}

std::optional<LimitName> Sandbox::ReachedLimit(const AddedUsage& added) {
  connects_.ReleaseRenames();
  if (cgroup_.OutOfMemoryKills().value_or(0) > forgiven_kills_) return LimitName::kMemory;
  if (cgroup_.RefusedForks().value_or(0) > 0) return LimitName::kPids;
  DiskUsage disk = Disk();
  if (disk.full && !OutlastsFullDisk()) return LimitName::kDisk;
  std::optional<std::chrono::nanoseconds> time = ProcessorTime(added);
  if (time && *time > std::chrono::seconds(limits_.cpu_s)) return LimitName::kAgentCpu;
  bool watch_memory = limits_.memory_bytes > 0 && !cgroup_.enforces("memory");
  bool watch_pids = limits_.pids > 0 && !cgroup_.enforces("pids");
  // What a refused agent leaves is read while it comes and goes: seven eighths count as the limit.
  if (watch_pids && tasks_at_end_ >= limits_.pids - limits_.pids / 8) return LimitName::kPids;
  if (!init_.valid() || (!watch_memory && !watch_pids)) return std::nullopt;
  ProcessUsage used = Measure();
  bool over = watch_memory && MemoryBytes(used, disk) + added.memory_bytes > limits_.memory_bytes;
  // Processes are read one after another. While they map what others have, a page counts as a whole
  // here and as a half there: with shared memory, a second look has to see it too.
  bool seen_before = std::exchange(seen_over_memory_, over);
  if (over && (seen_before || used.shared_bytes == 0)) return LimitName::kMemory;
  // The sandbox's first process is not the agent's. One less than all: a process that is refused a
  // child often ends for it.
  if (watch_pids && used.tasks >= limits_.pids) return LimitName::kPids;
  return std::nullopt;
}

DiskUsage Sandbox::Disk() {
  ActAsAgent agent(ids_);
  DiskUsage usage = disk_.valid() ? disk_.Measure(init_.valid() ? processes_.get() : -1)
                                  : MeasureDisk(upper_.get());
  disk_peak_bytes_ = std::max(disk_peak_bytes_, usage.bytes);
  disk_filled_ |= usage.full;
  return usage;
}

int64_t Sandbox::DiskPeakBytes() {
  (void)Disk();
  return disk_peak_bytes_;
}

// Returns the processes to count: all in the sandbox's own /proc (nullopt); in the host's, those
// that the agent started.
std::optional<std::vector<pid_t>> Sandbox::Members() const {
  if (!broker_) return std::nullopt;
  return Descendants(init_.get());
}

ProcessUsage Sandbox::Measure() const { return MeasureProcesses(processes_.get(), Members()); }

int64_t Sandbox::SharedBytes() const {
  ActAsAgent agent(ids_);
  return MeasureSharedMemory(processes_.get(), Members());
}

Result<Fd> Sandbox::OpenRoot() const {
  if (broker_) return sys::Open("/", O_PATH | O_DIRECTORY).Context("looking into the sandbox");
  return OpenRootOf(init_.get());
}

}  // namespace sandbox
