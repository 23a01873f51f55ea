// SPDX-License-Identifier: Apache-2.0
// What keeps an agent where it is, and how far this host does: the one list of their names, in
// run.json's `isolation.controls`, in the configuration's `require` and in `doctor`.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace sandbox {

enum class ControlState { kEnforced, kEmulated, kUnavailable };

enum class ControlName {
  kNamespaces,
  kRootFileSystem,
  kFiles,
  kCheckout,
  kNetwork,
  kCapture,
  kTcpRules,
  kNames,
  kSignals,
  kProcesses,
  kCapabilities,
  kSeccomp,
  kLandlock,
  kDisk,
  kMemory,
  kCpu,
  kPids,
  kCpuTime,
  kOpenFiles,
  kFileSize,
  // Those of the runner, and of other backends.
  kEgressProxy,
  kProgramIdentity,
  kDirectoryRenames,
  kProgramRecord,
  kAgentOutput,
  kTime,
  kOutput,
  kBudget,
  kOverlay,
  kImageSignature,
  kRecords,
  kProposals,
  kRemoval,
};

struct ControlRow {
  ControlName name;
  std::string_view text;
  bool required = false;  // A configuration may `require` it: it is judged before the agent starts.
};

inline constexpr auto kControls = std::to_array<ControlRow>({
    {ControlName::kNamespaces, "namespaces", true},
    {ControlName::kRootFileSystem, "root file system"},
    {ControlName::kFiles, "files"},
    {ControlName::kCheckout, "checkout"},
    {ControlName::kNetwork, "network", true},
    {ControlName::kCapture, "capture", true},
    {ControlName::kTcpRules, "TCP rules of Landlock"},
    {ControlName::kNames, "names"},
    {ControlName::kSignals, "signals"},
    {ControlName::kProcesses, "processes"},
    {ControlName::kCapabilities, "capabilities", true},
    {ControlName::kSeccomp, "seccomp", true},
    {ControlName::kLandlock, "landlock", true},
    {ControlName::kDisk, "disk", true},
    {ControlName::kMemory, "memory", true},
    {ControlName::kCpu, "cpu", true},
    {ControlName::kPids, "pids", true},
    {ControlName::kCpuTime, "CPU time", true},
    {ControlName::kOpenFiles, "open files", true},
    {ControlName::kFileSize, "file size", true},
    {ControlName::kEgressProxy, "egress proxy"},
    {ControlName::kProgramIdentity, "program identity"},
    {ControlName::kDirectoryRenames, "directory renames"},
    {ControlName::kProgramRecord, "program record"},
    {ControlName::kAgentOutput, "agent output"},
    {ControlName::kTime, "wall"},
    {ControlName::kOutput, "output"},
    {ControlName::kBudget, "budget"},
    {ControlName::kOverlay, "overlay"},
    {ControlName::kImageSignature, "image signature"},
    {ControlName::kRecords, "records"},
    {ControlName::kProposals, "proposals"},
    {ControlName::kRemoval, "removal"},
});

constexpr std::string_view TextOf(ControlName name) {
  return std::find_if(kControls.begin(), kControls.end(),
                      [&](const ControlRow& row) { return row.name == name; })
      ->text;
}

// The state of one control on this host: for the record, and for `require:`, which refuses a run
// whose control is not kEnforced.
struct Control {
  ControlName name;
  ControlState state = ControlState::kUnavailable;
  std::string note;  // The basis for it, or the reason why it is not enforced.
};

}  // namespace sandbox
