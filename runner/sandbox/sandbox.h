// SPDX-License-Identifier: Apache-2.0
// A running sandbox, in either tier: start it from a plan, attend to its first process, read
// limits and changes, end it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/thread.h"
#include "sandbox/agent_process.h"
#include "sandbox/call/broker.h"
#include "sandbox/call/connect_watch.h"
#include "sandbox/limit/cgroup.h"
#include "sandbox/limit/control.h"
#include "sandbox/limit/disk_watch.h"
#include "sandbox/limit/limit.h"
#include "sandbox/limit/usage.h"
#include "sandbox/network/network.h"
#include "sandbox/plan.h"
#include "sandbox/scratch_directory.h"
#include "sandbox/tree.h"

namespace sandbox {

// Lists the controls of tier namespaces. `scratch` is the directory on disk of the writable layers,
// or empty; `waiver` says why not every connection is captured, or is empty.
std::vector<Control> ListControls(const Cgroup& cgroup, const SandboxPlan& plan,
                                  const std::string& scratch, const std::string& waiver);
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
class Sandbox {
 public:
  // Builds the sandbox up to the point where the agent could be started. `input` is what the agent
  // reads. Fails with kUnsupported and a hint where the host refuses what is needed.
  static Result<Sandbox> Start(SandboxPlan plan, AgentInput input, HostResources around = {});

  Sandbox(Sandbox&&) = default;
  Sandbox& operator=(Sandbox&&) = delete;
  ~Sandbox();

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
  void Kill();

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
  bool renewable() const;
  // Builds a second tree of files, as this sandbox's was in the beginning, with a first process of
  // its own, in the same user and network namespaces and under the same limits. `input` is what its
  // agent reads. Nothing of the sandbox changes before Replace().
  Result<Renewal> Renew(AgentInput input);
  // Returns how many bytes the files of that tree may have while this one's are there: both lie in
  // memory.
  int64_t RenewalRoom();
  // Kills what there is and starts the agent in what was built.
  Status Replace(Renewal renewal);

  Inside inside() const;
  Inside InsideOf(const Renewal& renewal) const;
  // Returns every process but its first one as its own /proc numbers it; nullopt in tier landlock.
  std::optional<std::vector<pid_t>> InnerProcesses() const;

  // Returns the agent's ids, for looking into its processes.
  const AgentIds& ids() const { return ids_; }
  // Opens the agent's root directory, as the supervisor reaches it.
  Result<Fd> OpenRoot() const;

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
  void ForgiveMemory() { forgiven_kills_ = cgroup_.OutOfMemoryKills().value_or(0); }
  // Returns the processor time of its processes so far; nullopt unless SandboxLimits::cpu_s asks
  // for it to be counted.
  std::optional<std::chrono::nanoseconds> ProcessorTime(const AddedUsage& added);
  // Returns the most that was seen on the writable layers; after Kill() too.
  int64_t DiskPeakBytes();
  // Returns whether they were seen full.
  bool disk_filled() const { return disk_filled_; }
  const SandboxLimits& limits() const { return limits_; }

 private:
  Sandbox(Cgroup cgroup, const SandboxPlan& plan)
      : cgroup_(std::move(cgroup)), limits_(plan.limits), began_(sys::FileTime(plan.checkout)) {}
  static Result<Sandbox> StartInNamespaces(SandboxPlan plan, AgentInput input, Cgroup cgroup, Fd programs);
  static Result<Sandbox> StartByLandlock(SandboxPlan plan, AgentInput input, pid_t helper,
                                         ScratchDirectory scratch, Cgroup cgroup, Fd programs);
  Result<int64_t> PrepareScratch(const SandboxPlan& plan);
  Result<int64_t> CopyWorkspace(const SandboxPlan& plan);
  Status OpenLoopbackSockets();
  void KillByInit();
  std::optional<std::vector<pid_t>> Members() const;
  ProcessUsage Measure() const;
  int64_t SharedBytes() const;
  Result<std::string> AwaitGatewaySockets(Deadline deadline);
  Result<DiskLayers> MakeDiskLayers(const SandboxPlan& plan);
  Status CopyCheckout(const std::string& why, SandboxPlan* plan);
  Result<std::vector<Fd>> OpenSources(SandboxPlan* plan);
  // The kernel refuses what does not fit in memory; nothing else does on a disk.
  bool OutlastsFullDisk() const { return limits_.lasting && !disk_.valid(); }
  // Measures what the writable layers hold now.
  DiskUsage Disk();
  int64_t SocketBytes(int64_t left);
  int64_t MemoryBytes(const ProcessUsage& used, const DiskUsage& disk);

  Cgroup cgroup_;
  SandboxLimits limits_;
  std::optional<ScratchDirectory> scratch_;
  DiskWatch disk_;
  int64_t tasks_at_end_ = 0;
  bool seen_over_memory_ = false;  // By the last look, where no cgroup counts.
  int64_t disk_peak_bytes_ = 0;
  bool disk_filled_ = false;
  // Tier landlock: what the broker is to know, until StartAgent().
  std::optional<BrokerSetup> broker_;
  AgentIds ids_;
  pid_t helper_ = -1;
  std::optional<timespec> copied_;
  timespec began_{};
  Fd processes_;         // The sandbox's own /proc, or that of all processes,
  SocketMeter sockets_;  // and what else usage.h measures.
  Fd segments_;
  std::chrono::nanoseconds processor_time_{0};  // The most that was measured.
  int64_t forgiven_kills_ = 0;
  OwnedPid init_;
  Fd pidfd_;
  Fd control_;
  std::vector<GatewaySocket> gateway_sockets_;
  Fd diagnostics_;
  ConnectWatch connects_;
  Fd upper_;
  Fd layers_;                    // The layers, of which upper_ is one.
  std::string watched_filter_;   // Sent with ControlKind::kStartAgent.
  std::map<uid_t, Fd> id_maps_;  // User namespaces that map an owner to the agent's user.
  std::unique_ptr<SandboxPlan> plan_;
  sys::BackgroundTask closing_;  // Closes the descriptors of the tree that Replace() has replaced.
  Fd user_;                      // Its namespaces; not in tier landlock.
  Fd network_;
  Fd mounts_;
  Fd output_;
  Fd error_;
  std::vector<Control> controls_;
};

}  // namespace sandbox
