// SPDX-License-Identifier: Apache-2.0
// The limits of a run: their values, and the one list of their names, wherever one is named.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sandbox/limit/control.h"

namespace sandbox {

// The limits of one run; 0 is as much as there is, but for the disk.
struct SandboxLimits {
  int64_t memory_bytes = 0;
  double cpus = 0;  // 0 for all.
  int64_t pids = 0;
  int64_t disk_bytes = 0;
  int64_t cpu_s = 0;       // Seconds of processor time, all processes together.
  int64_t open_files = 0;  // The open files of each process.
  int64_t file_bytes = 0;  // The bytes of each file.
  // The sandbox outlasts what runs in it: in memory its files leave room for processes, and a disk
  // that is full there is for its programs to see.
  bool lasting = false;
};

enum class LimitName {
  kTimeout,
  kIdle,
  kMemory,
  kCpus,
  kPids,
  kDisk,
  kOutput,
  kAgentCpu,
  kOpenFiles,
  kFileSize,
  kHostBytes,
  kRunnerCpu,
  kTokens,
  kCost,
  kRequests,
  kRecords,
};

struct LimitRow {
  LimitName name;
  std::string_view option;    // Of the command line, without "--"; empty if there is none.
  std::string_view task_key;  // Of a task's `limits`; empty if a task cannot set it.
  std::string_view record;    // In run.json: LimitRecord::name and OutcomeRecord::limit.
  std::string_view unit;      // In run.json.
  bool openshell = false;     // OpenShell, or the runner for it, enforces it.
  bool redteam = false;       // A red team's run takes it.
  bool allowance = false;     // It says how much a run may take: resumed with more, it is the same.
  std::string_view reached;   // Why a run ended that reached it; empty if none ends so.
};

inline constexpr auto kLimits = std::to_array<LimitRow>({
    {LimitName::kTimeout, "timeout", "timeout", "wall", "s", true, false, true,
     "the time limit ended the agent"},
    {LimitName::kIdle, "idle-timeout", "idle_timeout", "idle", "s", true, false, true,
     "the agent printed nothing for longer than the idle limit"},
    {LimitName::kMemory, "memory", "memory", "memory", "bytes", true, true, false,
     "the agent's processes used more than the memory limit"},
    {LimitName::kCpus, "cpus", "cpus", "cpu", "cpus", true, true, false, ""},
    {LimitName::kPids, "pids", "pids", "pids", "processes", false, true, false,
     "the agent reached the limit of processes and threads"},
    {LimitName::kDisk, "disk", "disk", "disk", "bytes", true, true, false,
     "the writable layers are full"},
    {LimitName::kOutput, "output", "output", "output", "bytes", true, false, false,
     "the agent wrote more than the output limit"},
    {LimitName::kAgentCpu, "agent-cpu", "agent_cpu", "agent-cpu", "s", false, false, true,
     "the agent's processes used more CPU time than the limit"},
    {LimitName::kOpenFiles, "open-files", "open_files", "open-files", "files", false, true, false,
     ""},
    {LimitName::kFileSize, "file-size", "file_size", "file-size", "bytes", false, true, false, ""},
    {LimitName::kHostBytes, "host-bytes", "host_bytes", "host-bytes", "bytes", false, false, false,
     "a host used up the limit of data to and from each host"},
    {LimitName::kRunnerCpu, "runner-cpu", "", "runner-cpu", "s", false, false, true,
     "the gateway and the supervisor used more CPU time than the limit"},
    {LimitName::kTokens, "max-tokens", "max_tokens", "tokens", "tokens", false, false, true,
     "the run's budget of tokens is used up"},
    {LimitName::kCost, "max-cost", "max_cost", "cost", "usd", false, false, true,
     "the run's budget of cost is used up"},
    {LimitName::kRequests, "max-requests", "max_requests", "requests", "requests", false, false,
     true, "the run's budget of requests is used up"},
    {LimitName::kRecords, "", "", "records", "bytes", true, false, false,
     "OpenShell's records of the sandbox exceed 64 MiB"},
});

constexpr const LimitRow& RowOf(LimitName name) {
  return *std::find_if(kLimits.begin(), kLimits.end(),
                       [&](const LimitRow& row) { return row.name == name; });
}

// Returns whether it bounds the use of models: a run that reaches it has done some of its work.
constexpr bool BoundsModels(LimitName name) {
  return name == LimitName::kTokens || name == LimitName::kCost || name == LimitName::kRequests;
}

constexpr std::string_view OptionOf(LimitName name) { return RowOf(name).option; }

// Returns the row with that name in run.json, or that option; null if there is none.
constexpr const LimitRow* FindLimit(std::string_view text, std::string_view LimitRow::*field) {
  for (const LimitRow& row : kLimits) {
    if (row.*field == text && !text.empty()) return &row;
  }
  return nullptr;
}

// The limits that the kernel keeps for each process by itself: agent_process.cc sets them.
struct ProcessLimitRow {
  LimitName limit;
  ControlName control;
  int64_t SandboxLimits::*member;
  std::string_view note;
};

inline constexpr auto kProcessLimits = std::to_array<ProcessLimitRow>({
    {LimitName::kOpenFiles, ControlName::kOpenFiles, &SandboxLimits::open_files, "RLIMIT_NOFILE"},
    {LimitName::kFileSize, ControlName::kFileSize, &SandboxLimits::file_bytes, "RLIMIT_FSIZE"},
});

}  // namespace sandbox
