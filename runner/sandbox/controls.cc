// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/privileges.h"
#include "sandbox/sandbox.h"

namespace sandbox {

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

}  // namespace sandbox
