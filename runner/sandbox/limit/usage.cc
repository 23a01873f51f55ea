// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/free_with.h"
#include "base/sys.h"

namespace sandbox {
namespace {

constexpr size_t kProcFileBytesMax = 65536;
constexpr size_t kSegmentsBytesMax = 4 << 20;  // 4096 lines, the kernel's default bound.
// A disk counts as full with one in this many left: what did not fit is rarely the last block.
constexpr uint64_t kFullShare = 1000;
constexpr int64_t kBytesPerInode = 4096;
constexpr int64_t kInodesMin = 4096;
// The kernel's memory for each, about: inode and name, task and stack.
constexpr int64_t kInodeBytes = 1024;
constexpr int64_t kTaskBytes = 20 << 10;

using Directory = std::unique_ptr<DIR, FreeWith<::closedir>>;

// The number behind `name` at the beginning of a line, such as "Threads:"; 0 without one.
int64_t FieldOf(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    return ::strtoll(std::string(text.substr(at + name.size(), 32)).c_str(), nullptr, 10);
  }
  return 0;
}

std::string ReadAt(int directory, const std::string& path) {
  Result<Fd> file = sys::OpenAt(directory, path, O_RDONLY);
  if (!file.ok()) return {};  // It ended meanwhile.
  Result<std::string> text = sys::ReadAll(file.value().get(), kProcFileBytesMax);
  return text.ok() ? std::move(text).value() : std::string();
}

// proc(5): utime, stime, cutime and cstime are the 12th to 15th field behind the name, which is in
// parentheses and may hold anything.
std::chrono::nanoseconds ProcessorTimeOf(const std::string& stat) {
  constexpr int kFieldsBefore = 11;
  size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) fields >> skipped;
  int64_t ticks = 0;
  for (int i = 0; i < 4; ++i) {
    int64_t part = 0;
    fields >> part;
    ticks += part;
  }
  return ticks * std::chrono::nanoseconds(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK);
}

using Members = std::optional<std::vector<pid_t>>;

// Tells `take` the text of PID/`name` for each process.
void ForEachFile(int processes, const Members& members, const std::string& name,
                 const std::function<void(const std::string&)>& take) {
  if (members) {
    for (pid_t pid : *members) take(ReadAt(processes, std::to_string(pid) + "/" + name));
    return;
  }
  Result<Fd> copy = sys::OpenAt(processes, ".", O_RDONLY | O_DIRECTORY);
  if (!copy.ok()) return;
  Directory entries(::fdopendir(copy.value().get()));
  if (entries == nullptr) return;
  (void)copy.value().Take();  // The directory's now.
  while (const dirent* entry = ::readdir(entries.get())) {
    if (ascii::IsDigit(entry->d_name[0])) {
      take(ReadAt(processes, std::string(entry->d_name) + "/" + name));
    }
  }
}

}  // namespace

Result<Fd> OpenRootOf(pid_t init) {
  Result<Fd> root = sys::Open("/proc/" + std::to_string(init) + "/root", O_PATH | O_DIRECTORY);
  // Nothing that a user named is missing.
  if (!root.ok() && root.error().code == Code::kNotFound) {
    return Error{Code::kIo, "the sandbox was killed from outside"};
  }
  if (!root.ok() && root.error().os_error == EACCES && ::geteuid() == 0) {
    return Error{Code::kUnsupported,
                 "root may not look into the sandbox: its container has no CAP_SYS_PTRACE"};
  }
  return std::move(root).Context("looking into the sandbox");
}

Result<Fd> OpenProcesses(pid_t init) {
  Fd root = TRY(OpenRootOf(init));
  Result<Fd> opened = sys::OpenBeneath(root.get(), "proc", O_RDONLY | O_DIRECTORY);
  if (!opened.ok() && opened.error().code == Code::kNotFound) {
    return Error{Code::kIo, "the sandbox has no /proc, or was killed from outside"};
  }
  Fd processes = TRY(std::move(opened).Context("looking into the sandbox"));
  struct statfs fs {};
  if (::fstatfs(processes.get(), &fs) != 0 || fs.f_type != PROC_SUPER_MAGIC) {
    return Error{Code::kIo, "the sandbox's /proc is not a proc file system"};
  }
  return processes;
}

ProcessUsage MeasureProcesses(int processes, const Members& members) {
  ProcessUsage usage;
  ForEachFile(processes, members, "status", [&](const std::string& status) {
    int64_t threads = FieldOf(status, "Threads:");
    usage.tasks += threads;
    const size_t state = status.find("\nState:\t");
    const char letter = state == std::string::npos ? 0 : status[state + sizeof "\nState:\t" - 1];
    usage.running += letter == 'R' || letter == 'D' ? 1 : 0;
    usage.own_bytes += threads * kTaskBytes;
    for (const char* kilobytes : {"RssAnon:", "VmSwap:", "VmPTE:"}) {
      usage.own_bytes += 1024 * FieldOf(status, kilobytes);
    }
    usage.shared_bytes += 1024 * FieldOf(status, "RssShmem:");
  });
  return usage;
}

std::chrono::nanoseconds MeasureProcessorTime(int processes, const Members& members) {
  std::chrono::nanoseconds sum{0};
  ForEachFile(processes, members, "stat",
              [&](const std::string& stat) { sum += ProcessorTimeOf(stat); });
  return sum;
}

int64_t MeasureSharedMemory(int processes, const Members& members) {
  int64_t kilobytes = 0;
  ForEachFile(processes, members, "smaps_rollup",
              [&](const std::string& sums) { kilobytes += FieldOf(sums, "Pss_Shmem:"); });
  return 1024 * kilobytes;
}

int64_t MeasureDetachedSegments(int segments) {
  if (segments < 0 || ::lseek(segments, 0, SEEK_SET) != 0) return 0;
  Result<std::string> text = sys::ReadAll(segments, kSegmentsBytesMax);
  if (!text.ok()) return 0;
  std::istringstream lines(text.value());
  std::string line;
  std::getline(lines, line);  // The columns' names.
  int64_t bytes = 0;
  while (std::getline(lines, line)) {
    // key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
    std::istringstream columns(line);
    std::string skipped;
    int64_t attached = 0;
    int64_t resident = 0;
    int64_t swapped = 0;
    for (int i = 0; i < 6; ++i) columns >> skipped;
    columns >> attached;
    for (int i = 0; i < 7; ++i) columns >> skipped;
    columns >> resident >> swapped;
    if (columns && attached == 0) bytes += resident + swapped;
  }
  return bytes;
}

uint64_t InodesOf(int64_t disk_bytes) {
  return static_cast<uint64_t>(std::max(disk_bytes / kBytesPerInode, kInodesMin));
}

DiskUsage MeasureDisk(int directory) {
  struct statfs fs {};
  if (directory < 0 || ::fstatfs(directory, &fs) != 0) return {};
  DiskUsage usage;
  usage.bytes = static_cast<int64_t>(fs.f_blocks - fs.f_bfree) * fs.f_bsize;
  usage.inode_bytes = static_cast<int64_t>(fs.f_files - fs.f_ffree) * kInodeBytes;
  usage.full = fs.f_bfree * kFullShare < fs.f_blocks || fs.f_ffree * kFullShare < fs.f_files;
  return usage;
}

}  // namespace sandbox
