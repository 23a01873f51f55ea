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
    controls->push_back({"CPU time", counted ? "enforced" : "emulated",
                         counted ? "cgroup"
                                 : "added up over processes; children that their parents do not "
                                   "wait for are not counted"});
  }
  if (limits.open_files > 0) {
    controls->push_back({"open files", "enforced", "RLIMIT_NOFILE"});
  }
  if (limits.file_bytes > 0) {
    controls->push_back({"file size", "enforced", "RLIMIT_FSIZE"});
  }
}

std::vector<Control> ListControls(const Cgroup& cgroup, const SandboxPlan& plan,
                                  const std::string& scratch, const std::string& waiver) {
  std::vector<Control> controls;
  auto add = [&](std::string name, std::string state, std::string note) {
    controls.push_back({std::move(name), std::move(state), std::move(note)});
  };
  add("namespaces", "enforced", "user, mount, pid, net, ipc, uts, cgroup");
  add("root file system", "enforced",
      "only what the policy lists, read-only; credentials are hidden");
  add("network", "enforced", "loopback only; the gateway is the only way out");
  if (waiver.empty()) {
    add("capture", "enforced", "connections that bypass the proxy are captured and judged too");
  } else {
    add("capture", "emulated",
        "only on the policy's ports; other connections fail and are not recorded: " + waiver);
  }
  add("capabilities", "enforced", "none, and no_new_privs");
  add("seccomp", "enforced", "system-call filter");
  int abi = sys::landlock::Abi();
  add("landlock", abi > 0 ? "enforced" : "unavailable",
      abi > 0 ? "ABI " + std::to_string(abi) : "this kernel does not support Landlock");
  if (scratch.empty()) {
    add("disk", "enforced", "size of the writable layers");
  } else {
    add("disk", "emulated", "the size of the writable layers, in " + scratch + ", is polled");
  }
  std::string why = cgroup.why_not().empty() ? "no such controller" : cgroup.why_not();
  auto limited = [&](const char* controller, bool asked, const std::string& instead) {
    if (!asked) return;
    bool kernel = cgroup.enforces(controller);
    add(controller, kernel ? "enforced" : "emulated", kernel ? "cgroup" : why + "; " + instead);
  };
  limited("memory", plan.limits.memory_bytes > 0,
          "the memory of processes, files and sockets is polled; pipes, netlink sockets, System V "
          "messages and semaphores, and kernel caches are not counted");
  limited("cpu", plan.limits.cpus > 0, "the run is pinned to whole CPUs");
  if (cgroup.enforces("pids")) {
    add("pids", "enforced", "cgroup");
  } else {
    add("pids", "enforced", "RLIMIT_NPROC in the sandbox's user namespace");
  }
  AddProcessLimits(cgroup, plan.limits, &controls);
  return controls;
}

}  // namespace sandbox
