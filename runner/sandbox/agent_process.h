// SPDX-License-Identifier: Apache-2.0
// The first process of a sandbox, in either tier: it starts the agent, reaps, and ends with the
// agent or with the supervisor.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/call/program_record.h"
#include "sandbox/control.h"
#include "sandbox/limit/usage.h"
#include "sandbox/plan.h"

namespace sandbox {

// What the agent reads.
struct AgentInput {
  AgentInput() = default;
  AgentInput(Fd standard) : stream(std::move(standard)) {}
  AgentInput(Fd standard, Fd second) : stream(std::move(standard)), more(std::move(second)) {}

  Fd stream;  // Its standard input.
  Fd more;    // Its descriptor 3, the read end of a pipe; it has none if this is not valid.
};

struct AgentResources {
  Fd control;        // To the supervisor (sandbox/control.h).
  AgentInput input;  // The agent's standard streams.
  Fd output;
  Fd error;
  std::vector<Fd> groups = {};  // JoinCgroups().
  Fd programs = {};             // ProgramRecord's; not valid: none is kept.
};

// Opens a pipe for one of the agent's standard streams: what is read, without ever waiting, and
// what is written. It belongs to the agent's user, who may not open it by its name (/dev/stdout)
// otherwise.
Result<std::pair<Fd, Fd>> OpenStream(const SandboxPlan& plan);
// Lets the agent open the pipe that it has as a second input by its name (/dev/stdin), too.
Status GiveInput(const SandboxPlan& plan, const AgentInput& input);

// Makes the calling process, just forked from the supervisor, forget what it has from there:
// signals, descriptors other than the resources and `kept`, environment, arguments.
Status BeginFirstProcess(AgentResources* resources, std::vector<Fd*> kept);

// Limits a resource to `value`, or to what the process has already if that is less.
Status SetLimit(decltype(RLIMIT_CORE) resource, rlim_t value);

// Limits file sizes to SandboxLimits::file_bytes, or to `bytes_max` if that is less and not 0.
Status LimitFileSize(const SandboxLimits& limits, int64_t bytes_max);

class AgentProcess {
 public:
  // Borrows the plan.
  AgentProcess(const SandboxPlan& plan, AgentResources resources)
      : plan_(plan), resources_(std::move(resources)), programs_(std::move(resources_.programs)) {}

  // Tells the supervisor, with a descriptor or -1.
  Status SendFd(ControlKind kind, int fd);
  Status Send(std::string_view message, int fd = -1);
  void Report(const Error& error);

  // Starts the agent: in its process, `confine` is all that is between its streams and execve.
  Status Start(const std::function<Status()>& confine);
  // Reaps until the agent or the supervisor ends; tells of the agent's end.
  void Reap();

  pid_t pid() const { return pid_; }
  bool records_programs() const { return programs_.wanted(); }

 private:
  Status Enter();
  Status Execute();
  void Follow(const Fd& socket);
  // Takes the state of a child that waitpid() returned. Returns true for the agent's end.
  bool Take(pid_t pid, int status) { return !programs_.Take(pid, status) && pid == pid_; }
  // Returns what the sandbox's processes use, as the supervisor counts it.
  ProcessUsage MeasureTasks() const;
  // Waits for the children that have ended, and sets whether any had. Returns whether one is left:
  // orphans are children, too.
  bool ReapOthers(bool* ended);
  // Returns the most of them that the ended agent has left at once; 0 if they are not limited.
  // Waits while they run or become more, 5 seconds at most; not if none is left.
  int64_t TasksLeft();

  const SandboxPlan& plan_;
  AgentResources resources_;
  ProgramRecord programs_;
  pid_t pid_ = -1;
};

}  // namespace sandbox
