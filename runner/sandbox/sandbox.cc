// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/process.h"
#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/agent_process.h"
#include "sandbox/control.h"
#include "sandbox/inside.h"
#include "sandbox/landlock_sandbox.h"
#include "sandbox/limit/usage.h"
#include "sandbox/namespaces.h"
#include "sandbox/renewal.h"

namespace sandbox {

void OwnedPid::Kill() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);  // This process's child: the number is not given out again.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

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

Result<std::unique_ptr<Sandbox>> Sandbox::Start(SandboxPlan plan, AgentInput input,
                                                HostResources around) {
  Cgroup cgroup = around.cgroup ? std::move(*around.cgroup) : Cgroup::Create(plan.limits);
  plan.counts_tasks = plan.limits.pids > 0 && !cgroup.enforces("pids");
  if (!plan.shares_host()) {
    return NamespaceSandbox::Start(std::move(plan), std::move(input), std::move(cgroup),
                                   std::move(around.programs));
  }
  ENSURE(around.scratch.has_value());
  return LandlockSandbox::Start(std::move(plan), std::move(input), std::move(cgroup),
                                std::move(around));
}

void Sandbox::Adopt(OwnedPid init, Fd pidfd, Streams streams) {
  init_ = std::move(init);
  pidfd_ = std::move(pidfd);
  control_ = std::move(streams.control);
  output_ = std::move(streams.output);
  error_ = std::move(streams.error);
}

Result<Renewal> Sandbox::Renew(AgentInput /*input*/) {
  return Error{Code::kUnsupported, "this sandbox cannot be renewed in place"};
}

Status Sandbox::Replace(Renewal /*renewal*/) {
  return Error{Code::kUnsupported, "this sandbox cannot be replaced"};
}

// Leaves a sixteenth of the memory, as one tree does (SandboxLimits::lasting), and a fifth of
// theirs for inodes.
int64_t Sandbox::RenewalRoom() {
  if (limits_.memory_bytes == 0) return limits_.disk_bytes;
  const DiskUsage used = Disk();
  const int64_t left = limits_.memory_bytes / 16 * 15 - used.bytes - used.inode_bytes;
  return std::clamp<int64_t>(left / 5 * 4, 0, limits_.disk_bytes);
}

void Sandbox::RemoveTraces() const {
  cgroup_.Remove();
  if (scratch_) scratch_->Remove();
}

Status Sandbox::AddProcess(pid_t pid) const {
  if (Pins(cgroup_, limits_)) PinProcessors(pid, limits_.cpus);
  return cgroup_.Attach(pid);
}

Status Sandbox::StartAgent() {
  if (plan_->shares_host() && !(cgroup_.enforces("memory") && cgroup_.enforces("pids"))) {
    container_ = ContainerCgroup::Find();
    container_watch_ = ContainerWatch(container_->Read());
  }
  TRY(sys::SendMessage(control_.get(), StartMessage()));
  connects_ =
      WatchOf(TRY(Await(control_.get(), ControlKind::kWatch, Deadline::After(kBuildTimeout))));
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

int64_t Sandbox::MemoryBytes(const ProcessUsage& used, const DiskUsage& disk) {
  int64_t known = used.own_bytes + SegmentBytes();
  if (!disk_.valid()) known += disk.bytes + disk.inode_bytes;
  known += SocketBytes(limits_.memory_bytes - known - used.shared_bytes);
  if (known + used.shared_bytes <= limits_.memory_bytes) return known + used.shared_bytes;
  return known + SharedBytes();
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

void Sandbox::ForgiveMemory() {
  forgiven_kills_ = cgroup_.OutOfMemoryKills().value_or(0);
  if (container_) container_watch_ = ContainerWatch(container_->Read());
}

std::optional<LimitName> Sandbox::ReachedInContainer(int64_t tasks, int64_t own) {
  const ContainerCounts now = container_->Read();
  return container_watch_.Judge(now, std::min(tasks, now.tasks) - own, limits_.pids,
                                scratch_->HasNeighbours());
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
  const int64_t around = container_ ? container_->Read().tasks : 0;
  const ProcessUsage used =
      init_.valid() && (watch_memory || watch_pids || container_) ? Measure() : ProcessUsage();
  if (container_) {
    if (std::optional<LimitName> limit = ReachedInContainer(around, used.tasks)) return limit;
  }
  if (!init_.valid() || (!watch_memory && !watch_pids)) return std::nullopt;
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

int64_t Sandbox::SharedBytes() const {
  ActAsAgent agent(ids_);
  return MeasureSharedMemory(processes_.get(), Members());
}

void AddProcessLimits(const Cgroup& cgroup, const SandboxLimits& limits,
                      std::vector<Control>* controls) {
  if (limits.cpu_s > 0) {
    bool counted = cgroup.ProcessorTime().has_value();
    controls->push_back({ControlName::kCpuTime,
                         counted ? ControlState::kEnforced : ControlState::kEmulated,
                         counted ? "cgroup"
                                 : "added up over processes; children that their parents do not "
                                   "wait for are not counted"});
  }
  for (const ProcessLimitRow& row : kProcessLimits) {
    if (limits.*row.member > 0) {
      controls->push_back({row.control, ControlState::kEnforced, std::string(row.note)});
    }
  }
}

}  // namespace sandbox
