// SPDX-License-Identifier: Apache-2.0
#include "gateway/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>

#include "base/sys.h"

namespace gateway {
namespace {

constexpr size_t kProcFileBytesMax = size_t{1} << 20;
constexpr size_t kArgumentsMax = 16;
constexpr size_t kArgumentBytesMax = 512;
constexpr std::string_view kDeleted = " (deleted)";

std::string ProcPath(pid_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

// A file of a process that the kernel renders whole for one read (proc(5): stat, status, cmdline):
// less than was asked for is all of it, and to ask for the end would cost as much again.
Result<std::string> ReadProcessFile(pid_t pid, std::string_view name) {
  char chunk[4096];
  Fd fd = TRY(sys::Open(ProcPath(pid, name), O_RDONLY));
  ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
  if (n < 0) return Errno("read");
  std::string text(chunk, static_cast<size_t>(n));
  if (text.size() == sizeof chunk) text += TRY(sys::ReadAll(fd.get(), kProcFileBytesMax));
  return text;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Names in a directory of /proc, without "." and "..".
std::vector<std::string> ListNames(const std::string& path) {
  std::vector<std::string> names;
  Directory directory(::opendir(path.c_str()));
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::vector<pid_t> ParsePids(std::string_view text) {
  std::vector<pid_t> pids;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    pid_t pid = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
    if (!word.empty() && error == std::errc() && pid > 0) pids.push_back(pid);
  }
  return pids;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  // Any thread of a process can be the parent of a child.
  for (const std::string& thread : ListNames(ProcPath(pid, "task"))) {
    Result<std::string> text =
        sys::ReadFile(ProcPath(pid, "task/" + thread + "/children"), kProcFileBytesMax);
    if (!text.ok()) continue;
    std::vector<pid_t> found = ParsePids(text.value());
    children.insert(children.end(), found.begin(), found.end());
  }
  return children;
}

}  // namespace

std::vector<ProcessEntry> ListDescendants(pid_t init) {
  std::vector<ProcessEntry> processes = {{init, 0}};
  std::set<pid_t> seen = {init};
  for (size_t i = 0; i < processes.size() && processes.size() < kProcessesMax; ++i) {
    pid_t parent = processes[i].pid;
    for (pid_t child : ChildrenOf(parent)) {
      if (seen.insert(child).second) processes.push_back({child, parent});
    }
  }
  return processes;
}

bool HoldsSocket(pid_t pid, uint64_t inode, size_t* budget) {
  std::string wanted = "socket:[" + std::to_string(inode) + "]";
  std::string directory = ProcPath(pid, "fd");
  std::vector<std::string> names = ListNames(directory);
  *budget -= std::min(*budget, names.size());
  if (*budget == 0) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return sys::ReadLink(directory + "/" + name) == wanted;
  });
}

std::optional<std::string> ExecutableOf(pid_t pid) {
  std::optional<std::string> path = sys::ReadLink(ProcPath(pid, "exe"));
  if (!path.has_value()) return std::nullopt;
  // A file may really be called so: only where it does not exist is the mark the kernel's.
  bool marked = path->size() > kDeleted.size() &&
                path->compare(path->size() - kDeleted.size(), kDeleted.size(), kDeleted) == 0;
  if (marked && !sys::Exists(ProcPath(pid, "root") + *path)) {
    path->resize(path->size() - kDeleted.size());
  }
  return path;
}

bool StatExecutable(pid_t pid, struct stat* st) {
  return ::stat(ProcPath(pid, "exe").c_str(), st) == 0;
}

Fd OpenExecutable(pid_t pid) {
  Result<Fd> fd = sys::Open(ProcPath(pid, "exe"), O_RDONLY);
  return fd.ok() ? std::move(fd).value() : Fd();
}

std::vector<std::string> AbsoluteArguments(pid_t pid) {
  std::vector<std::string> paths;
  Result<std::string> text = ReadProcessFile(pid, "cmdline");
  if (!text.ok()) return paths;
  std::string_view rest = text.value();
  while (!rest.empty() && paths.size() < kArgumentsMax) {
    size_t end = std::min(rest.find('\0'), rest.size());
    std::string_view argument = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    bool path = !argument.empty() && argument.front() == '/';
    if (path) paths.emplace_back(argument.substr(0, kArgumentBytesMax));
  }
  return paths;
}

pid_t InnermostPid(pid_t pid) {
  constexpr std::string_view kField = "\nNStgid:";
  Result<std::string> status = ReadProcessFile(pid, "status");
  if (!status.ok()) return pid;
  size_t at = status.value().find(kField);
  if (at == std::string::npos) return pid;
  std::string_view line = std::string_view(status.value()).substr(at + kField.size());
  line = line.substr(0, line.find('\n'));
  size_t last = line.find_last_of(" \t");
  pid_t inner = 0;
  std::string_view word = line.substr(last == std::string_view::npos ? 0 : last + 1);
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), inner);
  return error == std::errc() && inner > 0 ? inner : pid;
}

std::optional<std::string> DescriptorTarget(pid_t pid, int fd) {
  return sys::ReadLink(ProcPath(pid, "fd/" + std::to_string(fd)));
}

std::optional<uint64_t> ParseSocketName(std::string_view name) {
  constexpr std::string_view kBefore = "socket:[";
  if (!name.starts_with(kBefore) || !name.ends_with("]")) return std::nullopt;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(1);
  uint64_t inode = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), inode);
  bool whole = error == std::errc() && end == name.data() + name.size();
  return whole ? std::optional(inode) : std::nullopt;
}

std::optional<ProcessBirth> BirthOf(pid_t pid) {
  constexpr int kParentField = 4;  // proc(5): fields of stat, counted from 1.
  constexpr int kStartField = 22;
  Result<std::string> stat = ReadProcessFile(pid, "stat");
  if (!stat.ok()) return std::nullopt;
  // The second field is the name, in parentheses, and may hold anything.
  std::string_view rest = stat.value();
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  ProcessBirth birth;
  for (int field = 2; field < kStartField && !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
    const char* end = rest.data() + rest.size();
    if (field + 1 == kParentField) std::from_chars(rest.data(), end, birth.parent);
    if (field + 1 == kStartField) std::from_chars(rest.data(), end, birth.started);
  }
  if (birth.started == 0) return std::nullopt;
  return birth;
}

}  // namespace gateway
