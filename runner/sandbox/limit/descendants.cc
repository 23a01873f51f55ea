// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/deadline.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

constexpr size_t kStatBytesMax = 4096;
constexpr size_t kChildrenBytesMax = 1 << 20;
constexpr std::chrono::seconds kKillTime{10};
constexpr int kLooksAtOrphans = 8;

// The fourth field of proc(5)'s stat, behind a name in parentheses that may hold anything. Nothing
// for a process that is gone.
std::optional<pid_t> ParentOf(int processes, const std::string& process) {
  Result<Fd> file = sys::OpenAt(processes, process + "/stat", O_RDONLY);
  if (!file.ok()) return std::nullopt;
  Result<std::string> text = sys::ReadAll(file.value().get(), kStatBytesMax);
  if (!text.ok()) return std::nullopt;
  std::string_view stat = text.value();
  constexpr size_t kStateSize = 4;  // ") S "
  size_t name = stat.rfind(')');
  if (name == std::string_view::npos || stat.size() < name + kStateSize) return std::nullopt;
  stat.remove_prefix(name + kStateSize);
  pid_t parent = 0;
  std::from_chars(stat.data(), stat.data() + stat.size(), parent);
  return parent;
}

// Each process with its parent. One that ends while this reads gives its children to another: these
// are read again, or else all that they have started would be lost.
std::map<pid_t, pid_t> ReadParents() {
  std::map<pid_t, pid_t> parents;
  Result<Fd> processes = sys::Open("/proc", O_RDONLY | O_DIRECTORY);
  if (!processes.ok()) return parents;
  Result<std::vector<std::string>> names = sys::DirectoryNames(processes.value().get());
  if (!names.ok()) return parents;
  for (const std::string& name : names.value()) {
    pid_t pid = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || *end != '\0') continue;
    std::optional<pid_t> parent = ParentOf(processes.value().get(), name);
    if (parent) parents.emplace(pid, *parent);
  }
  for (int look = 0; look < kLooksAtOrphans; ++look) {
    bool orphaned = false;
    for (auto entry = parents.begin(); entry != parents.end();) {
      auto& [pid, parent] = *entry;
      if (parent == 0 || parents.contains(parent)) {
        ++entry;
        continue;
      }
      std::optional<pid_t> now = ParentOf(processes.value().get(), std::to_string(pid));
      orphaned |= now != parent;
      parent = now.value_or(0);
      entry = now ? std::next(entry) : parents.erase(entry);
    }
    if (!orphaned) break;
  }
  return parents;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t process) {
  std::vector<pid_t> found;
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, parent] : ReadParents()) children.emplace(parent, pid);
  auto add = [&](pid_t parent) {
    auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  };
  add(process);
  for (size_t i = 0; i < found.size(); ++i) add(found[i]);
  return found;
}

std::vector<pid_t> Children(pid_t process) {
  std::vector<pid_t> children;
  const std::string number = std::to_string(process);
  Result<std::string> text =
      sys::ReadFile("/proc/" + number + "/task/" + number + "/children", kChildrenBytesMax);
  if (!text.ok()) return children;
  const char* at = text.value().data();
  const char* const end = at + text.value().size();
  for (pid_t pid = 0;;) {
    while (at != end && *at == ' ') ++at;
    auto [next, error] = std::from_chars(at, end, pid);
    if (error != std::errc()) return children;
    children.push_back(pid);
    at = next;
  }
}

// Stopped processes cannot fork while the others are looked for. A process that gives itself a new
// parent all the time would be another by the time that all were read; it comes to be a child of
// this one each time, and is stopped as that.
void KillDescendants(const std::vector<pid_t>& spared) {
  auto is_spared = [&](pid_t pid) {
    return std::find(spared.begin(), spared.end(), pid) != spared.end();
  };
  for (Deadline deadline = Deadline::After(kKillTime); !deadline.passed();) {
    for (pid_t pid : Children(::getpid())) {
      if (!is_spared(pid)) (void)::kill(pid, SIGSTOP);
    }
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

void KillUser(uid_t user) {
  const pid_t killer = ::fork();
  if (killer == 0) {
    if (::setresuid(user, user, user) == 0) (void)::kill(-1, SIGKILL);
    ::_exit(0);
  }
  while (killer > 0 && ::waitpid(killer, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sandbox
