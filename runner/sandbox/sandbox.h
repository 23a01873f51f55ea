// SPDX-License-Identifier: Apache-2.0
// A running sandbox, in either tier: start it from a plan, attend to its first process, read
// limits and changes, end it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/sys.h"
#include "sandbox/agent_process.h"
#include "sandbox/call/caller_view.h"
#include "sandbox/call/connect_watch.h"
#include "sandbox/limit/cgroup.h"
#include "sandbox/limit/container_cgroup.h"
#include "sandbox/limit/control.h"
#include "sandbox/limit/disk_watch.h"
#include "sandbox/limit/limit.h"
#include "sandbox/limit/usage.h"
#include "sandbox/network/network.h"
#include "sandbox/plan.h"
#include "sandbox/scratch_directory.h"

namespace sandbox {

// Adds the limits of AgentProcess, the same in every tier.
void AddProcessLimits(const Cgroup& cgroup, const SandboxLimits& limits,
                      std::vector<Control>* controls);

// The surroundings that were there before the sandbox.
struct HostResources {
  // A process of the host's that works for the sandbox: it is never the agent's to signal.
  pid_t helper = -1;
  std::optional<ScratchDirectory> scratch = {};  // The `scratch` of a plan for tier landlock.
  // The group of the plan's limits; if nullopt, it is made here.
  std::optional<Cgroup> cgroup = {};
  Fd programs = {};  // The file of ProgramRecord; if not valid, no such record is kept.
};

// Owns a child of this process: kills and reaps it in the end, unless it was moved elsewhere.
class OwnedPid {
 public:
  OwnedPid() = default;
  explicit OwnedPid(pid_t pid) : pid_(pid) {}
  OwnedPid(OwnedPid&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  OwnedPid& operator=(OwnedPid&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~OwnedPid() { Kill(); }

  pid_t get() const { return pid_; }  // -1 for none.
  bool valid() const { return pid_ >= 0; }
  // Kills it and waits until it is gone. Idempotent.
  void Kill();

 private:
  pid_t pid_ = -1;
};

// The files and processes that are built to take the place of a sandbox's.
struct Renewal {
  Fd pidfd;
  Fd control;
  Fd output;
  Fd error;
  Fd upper;
  Fd layers;
  Fd processes;
  Fd segments;
  Fd mounts;
  timespec began{};
  OwnedPid init;  // The last: it ends before what it has is closed.
};

// The place where a process of the supervisor's has to go to work with the agent's rights. Borrowed
// from the sandbox, or from a Renewal beside it.
struct Inside {
  const SandboxPlan* plan = nullptr;
  int user = -1;  // Namespaces; -1 in tier landlock.
  int mounts = -1;
  int layers = -1;  // The directory of the writable layers; -1 in tier landlock.

  // True if it has a tree, and processes, of its own.
  bool has_processes() const { return user >= 0; }
};

// A running sandbox: its first process and what came out of it. Destroying it kills and reaps all.
// Each tier is a class of its own: NamespaceSandbox, LandlockSandbox.
class Sandbox {
 public:
  // Builds the sandbox of the plan's tier, up to the point where the agent could be started.
  // `input` is what the agent reads. Fails with kUnsupported and a hint where the host refuses what
  // is needed.
  static Result<std::unique_ptr<Sandbox>> Start(SandboxPlan plan, AgentInput input,
                                                HostResources around = {});

  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  virtual ~Sandbox() = default;

  // Returns the gateway's sockets inside the sandbox's network namespace, once.
  std::vector<GatewaySocket> TakeGatewaySockets() { return std::move(gateway_sockets_); }
  // Returns a socket for the kernel's socket diagnostics of that namespace, once; not valid where
  // this kernel has none.
  Fd TakeDiagnostics() { return std::move(diagnostics_); }
  // Starts the agent. Fails with kNotFound if there is no such program in the sandbox.
  Status StartAgent();

  // Puts a process of the host's that works for the sandbox under its limits of memory and
  // processors. Without a cgroup, its memory is given to ReachedLimit().
  Status AddProcess(pid_t pid) const;

  pid_t init_pid() const { return init_.get(); }
  // Return readable descriptors: the agent's output and error streams, and the one that becomes
  // readable when the agent has ended (then ask TakeEnd()).
  int output() const { return output_.get(); }
  int error() const { return error_.get(); }
  int ended() const { return control_.get(); }

  // Returns the run's own directory on a disk, absolute; empty if there is none.
  std::string scratch() const { return scratch_ ? scratch_->path() : ""; }
  // Returns the watch in which every connect(2) inside waits from StartAgent() on, if this host
  // allows that.
  ConnectWatch& connects() { return connects_; }
  // Returns the next of them; `events` is what poll(2) said of its descriptor. Renames wait there
  // too, and are dealt with.
  std::optional<Connect> TakeConnect(short events);

  // Returns the agent's wait status (waitpid(2)); nullopt if the sandbox died before its agent
  // ended, which is what an out-of-memory kill of the first process looks like.
  std::optional<int> TakeEnd();

  // Kills everything inside and waits until the kernel has removed it. Idempotent.
  virtual void Kill() = 0;

  // Returns the upper directory of the workspace's overlay, or (see copied()) the checkout's copy;
  // valid after Kill() too.
  int upper() const { return upper_.get(); }
  // Returns the directory of all writable layers, likewise; -1 in tier landlock.
  int layers() const { return layers_.get(); }
  // Returns the time of the copy that the agent works on, if it does: files unchanged since then
  // (ctime on that disk) have not changed at all. nullopt if the policy hides the checkout.
  const std::optional<timespec>& copied() const { return copied_; }
  // Returns the time, on the checkout's disk, at which building what the agent works on began: what
  // changed in the checkout later (ctime) is not what the agent was given.
  const timespec& began() const { return began_; }

  // Returns whether Renew() can be had: not in tier landlock, nor with layers on a disk.
  virtual bool renewable() const { return false; }
  // Builds a second tree of files, as this sandbox's was in the beginning, with a first process of
  // its own, in the same user and network namespaces and under the same limits. `input` is what its
  // agent reads. Nothing of the sandbox changes before Replace().
  virtual Result<Renewal> Renew(AgentInput input);
  // Returns how many bytes the files of that tree may have while this one's are there: both lie in
  // memory.
  int64_t RenewalRoom();
  // Kills what there is and starts the agent in what was built.
  virtual Status Replace(Renewal renewal);

  virtual Inside inside() const { return {plan_.get()}; }
  virtual Inside InsideOf(const Renewal& /*renewal*/) const { return inside(); }
  // Returns every process but its first one as its own /proc numbers it; nullopt in tier landlock.
  virtual std::optional<std::vector<pid_t>> InnerProcesses() const { return std::nullopt; }

  // Returns the agent's ids, for looking into its processes.
  const AgentIds& ids() const { return ids_; }
  // Opens the agent's root directory, as the supervisor reaches it.
  virtual Result<Fd> OpenRoot() const = 0;

  // Removes what the destructor removes of the host's, for a process that ends without it. After
  // Kill().
  void RemoveTraces() const;

  const Cgroup& cgroup() const { return cgroup_; }
  const std::vector<Control>& controls() const { return controls_; }

  // Returns the limit that something inside has reached, or nullopt: measured from outside, so it
  // does not matter whether the agent noticed. Once a limit of a cgroup was reached it stays so;
  // the others are seen while they last, and the disk after Kill() too. `added` says what the
  // process of AddProcess() uses. Its memory counts as the sandbox's if no cgroup counts; its
  // processor time does not, if one does.
  struct AddedUsage {
    int64_t memory_bytes = 0;
    std::chrono::nanoseconds processor_time{0};
  };
  std::optional<LimitName> ReachedLimit(const AddedUsage& added);
  // Forgives one end for memory: what reached the limit has been ended, and the limit counts as
  // reached when that happens again.
  void ForgiveMemory();
  // Returns the processor time of its processes so far; nullopt unless SandboxLimits::cpu_s asks
  // for it to be counted.
  std::optional<std::chrono::nanoseconds> ProcessorTime(const AddedUsage& added);
  // Returns the most that was seen on the writable layers; after Kill() too.
  int64_t DiskPeakBytes();
  // Returns whether they were seen full.
  bool disk_filled() const { return disk_filled_; }
  const SandboxLimits& limits() const { return limits_; }

 protected:
  Sandbox(Cgroup cgroup, const SandboxPlan& plan)
      : cgroup_(std::move(cgroup)), limits_(plan.limits), began_(sys::FileTime(plan.checkout)) {}

  // Makes the message by which the first process starts the agent, and the watch out of what it
  // answers with.
  virtual std::string StartMessage() = 0;
  virtual ConnectWatch WatchOf(Fd listener) = 0;
  // Returns the processes to count: all in the sandbox's own /proc (nullopt), or in the host's,
  // those that the agent started.
  virtual std::optional<std::vector<pid_t>> Members() const = 0;
  // Returns the memory of its sockets; where counting takes long, only if all that could be of
  // them exceeds `left` bytes. Likewise of shared memory that no process has mapped.
  virtual int64_t SocketBytes(int64_t left) = 0;
  virtual int64_t SegmentBytes() const { return 0; }

  // Measures what the writable layers hold now.
  DiskUsage Disk();
  // Takes over the pipes and the socket of a first process that was started as `init`.
  struct Streams {
    Fd control;
    Fd output;
    Fd error;
  };
  void Adopt(OwnedPid init, Fd pidfd, Streams streams);

  Cgroup cgroup_;
  SandboxLimits limits_;
  std::optional<ScratchDirectory> scratch_;
  DiskWatch disk_;
  AgentIds ids_;
  std::optional<timespec> copied_;
  timespec began_{};
  Fd processes_;         // The sandbox's own /proc, or that of all processes,
  SocketMeter sockets_;  // and what else usage.h measures.
  OwnedPid init_;
  Fd pidfd_;
  Fd control_;
  std::vector<GatewaySocket> gateway_sockets_;
  Fd diagnostics_;
  ConnectWatch connects_;
  Fd upper_;
  Fd layers_;  // The layers, of which upper_ is one.
  std::unique_ptr<SandboxPlan> plan_;
  Fd output_;
  Fd error_;
  std::vector<Control> controls_;

 private:
  ProcessUsage Measure() const { return MeasureProcesses(processes_.get(), Members()); }
  int64_t SharedBytes() const;
  // The kernel refuses what does not fit in memory; nothing else does on a disk.
  bool OutlastsFullDisk() const { return limits_.lasting && !disk_.valid(); }
  int64_t MemoryBytes(const ProcessUsage& used, const DiskUsage& disk);
  // Tells a limit from the container's counts. The container had `tasks` before its agent's `own`
  // were counted.
  std::optional<LimitName> ReachedInContainer(int64_t tasks, int64_t own);

  int64_t tasks_at_end_ = 0;
  bool seen_over_memory_ = false;  // By the last look, where no cgroup counts.
  int64_t disk_peak_bytes_ = 0;
  bool disk_filled_ = false;
  std::chrono::nanoseconds processor_time_{0};  // The most that was measured.
  int64_t forgiven_kills_ = 0;
  std::optional<ContainerCgroup> container_;  // Where no group of its own counts all of it.
  ContainerWatch container_watch_;
};

}  // namespace sandbox
