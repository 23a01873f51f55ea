// SPDX-License-Identifier: Apache-2.0
#include "sandbox/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/free_with.h"
#include "base/sys.h"

namespace sandbox {
namespace {

constexpr size_t kProcFileBytesMax = 65536;
// One in so many is left: what did not fit is rarely the last block.
constexpr uint64_t kFullShare = 1000;

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

}  // namespace

Result<Fd> OpenProcesses(pid_t init) {
  Fd root = TRY(sys::Open("/proc/" + std::to_string(init) + "/root", O_PATH | O_DIRECTORY)
                    .Context("looking into the sandbox"));
  Fd processes = TRY(sys::OpenBeneath(root.get(), "proc", O_RDONLY | O_DIRECTORY)
                         .Context("looking into the sandbox"));
  struct statfs fs {};
  if (::fstatfs(processes.get(), &fs) != 0 || fs.f_type != PROC_SUPER_MAGIC) {
    return Error{Code::kIo, "the sandbox's /proc is not a proc file system"};
  }
  return processes;
}

ProcessUsage MeasureProcesses(int processes) {
  ProcessUsage usage;
  Result<Fd> copy = sys::OpenAt(processes, ".", O_RDONLY | O_DIRECTORY);
  if (!copy.ok()) return usage;
  Directory entries(::fdopendir(copy.value().get()));
  if (entries == nullptr) return usage;
  (void)copy.value().Take();  // The directory's now.
  while (const dirent* entry = ::readdir(entries.get())) {
    std::string name = entry->d_name;
    if (!ascii::IsDigit(name[0])) continue;
    std::string status = ReadAt(processes, name + "/status");
    usage.tasks += FieldOf(status, "Threads:");
    usage.memory_bytes += 1024 * FieldOf(status, "RssAnon:");
  }
  return usage;
}

DiskUsage MeasureDisk(int directory) {
  struct statfs fs {};
  if (directory < 0 || ::fstatfs(directory, &fs) != 0) return {};
  DiskUsage usage;
  usage.bytes = static_cast<int64_t>(fs.f_blocks - fs.f_bfree) * fs.f_bsize;
  usage.full = fs.f_bfree * kFullShare < fs.f_blocks || fs.f_ffree * kFullShare < fs.f_files;
  return usage;
}

}  // namespace sandbox
