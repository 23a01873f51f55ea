// SPDX-License-Identifier: Apache-2.0
#include "caller/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>

#include "base/sys.h"

namespace caller {
namespace {

constexpr size_t kProcFileBytesMax = size_t{1} << 20;
constexpr size_t kArgumentsMax = 16;
constexpr size_t kArgumentBytesMax = 512;
constexpr std::string_view kDeleted = " (deleted)";

std::string ProcPath(pid_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

// Returns what one read gives of a file in /proc, from its beginning; empty if the process has
// ended. Asking for the end as well would cost as much again.
std::string ReadOnce(int fd) {
  char chunk[4096];
  ssize_t n = ::pread(fd, chunk, sizeof chunk, 0);
  return {chunk, static_cast<size_t>(std::max<ssize_t>(n, 0))};
}

// Parses /proc/PID/stat (proc(5)); nullopt if it is malformed.
std::optional<ProcessBirth> ParseBirth(std::string_view stat) {
  constexpr int kParentField = 4;  // Counted from 1.
  constexpr int kStartField = 22;
  // The second field is the name, in parentheses, and may hold anything.
  stat.remove_prefix(std::min(stat.rfind(')'), stat.size()));
  ProcessBirth birth;
  for (int field = 2; field < kStartField && !stat.empty(); ++field) {
    stat.remove_prefix(std::min(stat.find(' '), stat.size() - 1) + 1);
    const char* end = stat.data() + stat.size();
    if (field + 1 == kParentField) std::from_chars(stat.data(), end, birth.parent);
    if (field + 1 == kStartField) std::from_chars(stat.data(), end, birth.started);
  }
  if (birth.started == 0) return std::nullopt;
  return birth;
}

// The last number of the field NStgid of proc(5)'s status; 0 of what has none.
pid_t ParseInnermostPid(std::string_view status) {
  constexpr std::string_view kField = "\nNStgid:";
  size_t at = status.find(kField);
  if (at == std::string::npos) return 0;
  std::string_view line = status.substr(at + kField.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(line.find_last_of(" \t") + 1);
  pid_t inner = 0;
  std::from_chars(line.data(), line.data() + line.size(), inner);
  return inner;
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

std::optional<ProcessHandle> ProcessHandle::Open(pid_t pid) {
  Result<Fd> directory = sys::Open("/proc/" + std::to_string(pid), O_PATH | O_DIRECTORY);
  if (!directory.ok()) return std::nullopt;
  ProcessHandle process(pid, std::move(directory).value());
  Result<Fd> stat = sys::OpenAt(process.directory_.get(), "stat", O_RDONLY);
  if (!stat.ok()) return std::nullopt;
  std::optional<ProcessBirth> birth = ParseBirth(ReadOnce(stat.value().get()));
  if (!birth.has_value()) return std::nullopt;
  process.birth_ = *birth;
  return process;
}

std::optional<std::string> ProcessHandle::Executable() const {
  std::optional<std::string> path = sys::ReadLinkAt(directory_.get(), "exe");
  if (!path.has_value()) return std::nullopt;
  // A file may really be called so: only where it does not exist is the mark the kernel's.
  if (path->ends_with(kDeleted) && !sys::ExistsAt(directory_.get(), "root" + *path)) {
    path->resize(path->size() - kDeleted.size());
  }
  return path;
}

bool ProcessHandle::StatExecutable(struct stat* st) const {
  return ::fstatat(directory_.get(), "exe", st, 0) == 0;
}

Fd ProcessHandle::OpenExecutable() const {
  Result<Fd> fd = sys::OpenAt(directory_.get(), "exe", O_RDONLY);
  return fd.ok() ? std::move(fd).value() : Fd();
}

std::vector<std::string> ProcessHandle::AbsoluteArguments() {
  std::vector<std::string> paths;
  if (!arguments_.valid()) {
    Result<Fd> fd = sys::OpenAt(directory_.get(), "cmdline", O_RDONLY);
    if (!fd.ok()) return paths;
    arguments_ = std::move(fd).value();
  }
  std::string text = ReadOnce(arguments_.get());
  std::string_view rest = text;
  while (!rest.empty() && paths.size() < kArgumentsMax) {
    size_t end = std::min(rest.find('\0'), rest.size());
    std::string_view argument = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    bool path = !argument.empty() && argument.front() == '/';
    if (path) paths.emplace_back(argument.substr(0, kArgumentBytesMax));
  }
  return paths;
}

pid_t ProcessHandle::InnermostPid() {
  if (innermost_pid_ != 0) return innermost_pid_;
  Result<Fd> fd = sys::OpenAt(directory_.get(), "status", O_RDONLY);
  if (!fd.ok()) return pid_;
  Result<std::string> status = sys::ReadAll(fd.value().get(), kProcFileBytesMax);
  pid_t inner = status.ok() ? ParseInnermostPid(status.value()) : 0;
  innermost_pid_ = inner > 0 ? inner : pid_;
  return innermost_pid_;
}

std::optional<std::string> ProcessHandle::DescriptorTarget(int fd) const {
  return sys::ReadLinkAt(directory_.get(), "fd/" + std::to_string(fd));
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

}  // namespace caller
