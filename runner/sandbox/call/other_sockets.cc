// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/other_sockets.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/sys.h"
#include "base/tree.h"
#include "sandbox/call/caller_view.h"

namespace sandbox {
namespace {

// The names in `directory` that are numbers; empty if it cannot be read.
std::vector<int> NumbersIn(const std::string& directory) {
  std::vector<int> numbers;
  Result<Fd> opened = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!opened.ok()) return numbers;
  Result<std::vector<std::string>> names = sys::DirectoryNames(opened.value().get());
  if (!names.ok()) return numbers;
  for (const std::string& name : names.value()) {
    int number = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data(), end, number).ptr == end) numbers.push_back(number);
  }
  return numbers;
}

std::string ProcPath(pid_t process) { return "/proc/" + std::to_string(process); }

}  // namespace

std::set<uint64_t> SocketsOfOthers(const std::function<std::vector<pid_t>()>& members) {
  std::map<pid_t, std::vector<uint64_t>> open;
  for (pid_t process : NumbersIn("/proc")) {
    if (process == ::getpid()) continue;  // It has copies of the agent's.
    for (int descriptor : NumbersIn(ProcPath(process) + "/fd")) {
      std::optional<uint64_t> inode = SocketInode(process, descriptor);
      if (inode) open[process].push_back(*inode);
    }
  }
  for (pid_t member : members()) open.erase(member);
  std::set<uint64_t> inodes;
  for (const auto& [process, sockets] : open) {
    if (sys::Exists(ProcPath(process))) inodes.insert(sockets.begin(), sockets.end());
  }
  return inodes;
}

}  // namespace sandbox
