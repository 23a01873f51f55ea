// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/descendants.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "base/deadline.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

constexpr size_t kStatBytesMax = 4096;
constexpr std::chrono::seconds kKillTime{10};

// The fourth field of proc(5)'s stat, behind a name in parentheses that may hold anything; 0 for a
// process that is gone.
pid_t ParentOf(int processes, const std::string& process) {
  Result<Fd> file = sys::OpenAt(processes, process + "/stat", O_RDONLY);
  if (!file.ok()) return 0;
  Result<std::string> text = sys::ReadAll(file.value().get(), kStatBytesMax);
  if (!text.ok()) return 0;
  std::string_view stat = text.value();
  constexpr size_t kStateSize = 4;  // ") S "
  size_t name = stat.rfind(')');
  if (name == std::string_view::npos || stat.size() < name + kStateSize) return 0;
  stat.remove_prefix(name + kStateSize);
  pid_t parent = 0;
  std::from_chars(stat.data(), stat.data() + stat.size(), parent);
  return parent;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t process) {
  std::vector<pid_t> found;
  Result<Fd> processes = sys::Open("/proc", O_RDONLY | O_DIRECTORY);
  if (!processes.ok()) return found;
  Result<std::vector<std::string>> names = sys::DirectoryNames(processes.value().get());
  if (!names.ok()) return found;
  std::multimap<pid_t, pid_t> children;
  for (const std::string& name : names.value()) {
    pid_t pid = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || *end != '\0') continue;
    pid_t parent = ParentOf(processes.value().get(), name);
    if (parent > 0) children.emplace(parent, pid);
  }
  auto add = [&](pid_t parent) {
    auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  };
  add(process);
  for (size_t i = 0; i < found.size(); ++i) add(found[i]);
  return found;
}

// What is stopped first cannot fork while the others are looked for.
void KillDescendants(const std::vector<pid_t>& spared) {
  auto is_spared = [&](pid_t pid) {
    return std::find(spared.begin(), spared.end(), pid) != spared.end();
  };
  for (Deadline deadline = Deadline::After(kKillTime); !deadline.passed();) {
    std::vector<pid_t> alive = Descendants(::getpid());
    std::erase_if(alive, is_spared);
    if (alive.empty()) return;
    for (int signal : {SIGSTOP, SIGKILL}) {
      for (pid_t pid : alive) (void)::kill(pid, signal);
    }
    for (pid_t pid : alive) (void)::waitpid(pid, nullptr, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace sandbox
