// SPDX-License-Identifier: Apache-2.0
#include "session/processes.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/sys.h"
#include "sandbox/limit/descendants.h"

namespace session {
namespace {

// The rounds of killing: two are enough, unless something forks meanwhile.
constexpr int kRounds = 20;
constexpr size_t kStatBytesMax = 4096;

std::set<pid_t> Beneath(pid_t process) {
  std::vector<pid_t> found = sandbox::Descendants(process);
  return {found.begin(), found.end()};
}

// Returns the child that `process` has had longest; -1 if it has none. Without the kernel's list it
// is the one with the smallest number.
pid_t FirstChild(pid_t process) {
  std::vector<pid_t> children = sandbox::Children(process);
  if (children.empty()) children = sandbox::Descendants(process);
  return children.empty() ? -1 : children.front();
}

// Returns what follows a process's name in proc(5)'s stat; empty if it has gone.
std::string StatOf(pid_t pid) {
  Result<std::string> stat = sys::ReadFile("/proc/" + std::to_string(pid) + "/stat", kStatBytesMax);
  if (!stat.ok()) return {};
  size_t name = stat.value().rfind(')');
  return name == std::string::npos || name + 2 >= stat.value().size()
             ? std::string()
             : stat.value().substr(name + 2);
}

// Returns 'T' if stopped, 'Z' if ended, and so on; 0 if gone.
char StateOf(pid_t pid) {
  std::string stat = StatOf(pid);
  return stat.empty() ? '\0' : stat.front();
}

// Returns 0 if gone.
pid_t ParentOf(pid_t pid) {
  std::string stat = StatOf(pid);
  pid_t parent = 0;
  if (stat.size() > 2) std::from_chars(stat.data() + 2, stat.data() + stat.size(), parent);
  return parent;
}

// Opens the processes below `first`, whatever numbers the kernel gives out again meanwhile: each
// was there before and after it was opened.
std::map<pid_t, Fd> OpenBeneath(pid_t first, const std::function<bool(pid_t)>& spared) {
  std::map<pid_t, Fd> opened;
  for (pid_t pid : Beneath(first)) {
    if (spared(pid)) continue;
    Result<Fd> process = sys::PidfdOpen(pid);
    if (process.ok()) opened.emplace(pid, std::move(process).value());
  }
  if (opened.empty()) return opened;
  std::set<pid_t> still = Beneath(first);
  std::erase_if(opened, [&](const auto& entry) { return !still.contains(entry.first); });
  return opened;
}

void Signal(const Fd& process, int signal) {
  (void)::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

}  // namespace

Processes::Processes(const sandbox::Sandbox& sandbox)
    : sandbox_(sandbox), first_(sandbox.init_pid()), keeper_(FirstChild(first_)) {}

std::set<pid_t> Processes::List() const {
  std::optional<std::vector<pid_t>> inner = sandbox_.InnerProcesses();
  return inner ? std::set<pid_t>{inner->begin(), inner->end()} : Beneath(first_);
}

// The last of NSpid (proc_pid_status(5)).
pid_t Processes::InnerNumber(pid_t pid) const {
  if (!sandbox_.inside().has_processes()) return pid;
  Result<std::string> status =
      sys::ReadFile("/proc/" + std::to_string(pid) + "/status", kStatBytesMax);
  size_t at = status.ok() ? status.value().find("\nNSpid:") : std::string::npos;
  if (at == std::string::npos) return -1;
  std::string_view line(status.value());
  line = line.substr(at + 1, line.find('\n', at + 1) - at - 1);
  line.remove_prefix(line.find_last_of("\t ") + 1);
  pid_t number = -1;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

pid_t Processes::OuterShell() const { return keeper_ < 0 ? -1 : FirstChild(keeper_); }

pid_t Processes::shell() const {
  pid_t shell = OuterShell();
  return shell < 0 ? -1 : InnerNumber(shell);
}

// What a server starts is the server's, also while another command runs. What the shell starts is
// the command's.
bool Processes::IsSpared(pid_t pid, pid_t shell, const std::set<pid_t>& spared,
                         std::map<pid_t, bool>* known) const {
  if (pid == keeper_ || pid == shell) return spared.contains(InnerNumber(pid));
  std::vector<pid_t> way;
  bool found = false;
  for (pid_t at = pid; at > 0 && at != first_ && at != keeper_ && at != shell; at = ParentOf(at)) {
    auto before = known->find(at);
    found = before != known->end() ? before->second : spared.contains(InnerNumber(at));
    if (found || before != known->end()) break;
    way.push_back(at);
  }
  for (pid_t at : way) (*known)[at] = found;
  return found;
}

void Processes::KillBut(const std::set<pid_t>& spared) const {
  for (int round = 0; round < kRounds; ++round) {
    const pid_t shell = OuterShell();
    std::map<pid_t, bool> known;
    std::map<pid_t, Fd> others =
        OpenBeneath(first_, [&](pid_t pid) { return IsSpared(pid, shell, spared, &known); });
    std::erase_if(others, [](const auto& entry) { return StateOf(entry.first) == 'Z'; });
    if (others.empty()) return;
    // Processes that are stopped first cannot fork while the others are killed.
    for (int signal : {SIGSTOP, SIGKILL}) {
      for (const auto& [pid, process] : others) Signal(process, signal);
    }
  }
}

Pause::Pause(const Processes& processes) {
  std::set<pid_t> seen;
  for (int round = 0; round < kRounds; ++round) {
    // A process that was started before its parent stopped is found next time.
    std::map<pid_t, Fd> found =
        OpenBeneath(processes.first_, [&](pid_t pid) { return seen.contains(pid); });
    if (found.empty()) return;
    for (auto& [pid, process] : found) {
      seen.insert(pid);
      if (StateOf(pid) == 'T') continue;
      Signal(process, SIGSTOP);
      stopped_.push_back(std::move(process));
    }
  }
}

Pause::~Pause() {
  for (auto process = stopped_.rbegin(); process != stopped_.rend(); ++process) {
    Signal(*process, SIGCONT);
  }
}

}  // namespace session
