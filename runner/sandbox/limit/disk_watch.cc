// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/disk_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/free_with.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

// A walk takes a fiftieth of the time at most: the run pays for it (--runner-cpu).
constexpr int kRestPerWalk = 50;
// So much may go from a disk without a reason in the tree before deleted files are looked for.
constexpr int64_t kUnexplainedBytes = 64 << 20;

using Directory = std::unique_ptr<DIR, FreeWith<::closedir>>;

// Opens for reading, and leaves the mode as it is now: the agent may have taken its own rights to
// it away.
Fd OpenToRead(int parent, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  Result<Fd> fd = sys::OpenAt(parent, name, kFlags);
  if (fd.ok()) return std::move(fd).value();
  Result<Fd> place = sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  struct stat st {};
  if (!place.ok() || ::fstat(place.value().get(), &st) != 0) return {};
  std::string self = "/proc/self/fd/" + std::to_string(place.value().get());
  if (::chmod(self.c_str(), st.st_mode | S_IRUSR | S_IXUSR) != 0) return {};
  fd = sys::Open(self, O_RDONLY | O_DIRECTORY);
  (void)::chmod(self.c_str(), st.st_mode);
  return fd.ok() ? std::move(fd).value() : Fd();
}

// Sums over a tree that its user goes on changing.
class TreeSum {
 public:
  // Returns false if something could not be counted: what hides counts as too much.
  bool Add(Fd directory, int depth) {
    if (depth > sys::kTreeDepthMax) return false;
    Directory entries(directory.valid() ? ::fdopendir(directory.get()) : nullptr);
    if (entries == nullptr) return false;
    int at = directory.Take();  // The stream's now.
    while (const dirent* entry = ::readdir(entries.get())) {
      std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat st {};
      if (::fstatat(at, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // Gone.
      Count(st);
      if (!S_ISDIR(st.st_mode)) continue;
      Fd inside = OpenToRead(at, entry->d_name);
      bool gone = !inside.valid() && ::faccessat(at, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
      if (!gone && !Add(std::move(inside), depth + 1)) return false;
    }
    return true;
  }

  // Files without a name that a process of `processes` has open, on the disk of `device`.
  void AddDeleted(int processes, dev_t device) {
    Result<std::vector<std::string>> names = sys::DirectoryNames(processes);
    if (!names.ok()) return;
    for (const std::string& process : names.value()) {
      Result<Fd> files = sys::OpenAt(processes, process + "/fd", O_RDONLY | O_DIRECTORY);
      if (!files.ok()) continue;  // Not a process, or ended.
      Result<std::vector<std::string>> open = sys::DirectoryNames(files.value().get());
      if (!open.ok()) continue;
      for (const std::string& file : open.value()) {
        struct stat st {};
        if (::fstatat(files.value().get(), file.c_str(), &st, 0) != 0) continue;
        if (st.st_nlink == 0 && st.st_dev == device && seen_.insert(st.st_ino).second) Count(st);
      }
    }
  }

  int64_t bytes() const { return bytes_; }
  int64_t files() const { return files_; }

 private:
  void Count(const struct stat& st) {
    if (st.st_nlink > 1 && !S_ISDIR(st.st_mode) && !seen_.insert(st.st_ino).second) return;
    bytes_ += static_cast<int64_t>(st.st_blocks) * 512;
    ++files_;
  }

  int64_t bytes_ = 0;
  int64_t files_ = 0;
  std::set<ino_t> seen_;  // The inodes of files that have several names or none.
};

}  // namespace

DiskWatch::DiskWatch(Fd directory, int64_t bytes_max)
    : directory_(std::move(directory)),
      bytes_max_(bytes_max),
      first_(MeasureTaken()),
      walked_(first_) {}

DiskWatch::Taken DiskWatch::MeasureTaken() const {
  struct statfs fs {};
  if (::fstatfs(directory_.get(), &fs) != 0) return {};
  return {static_cast<int64_t>(fs.f_blocks - fs.f_bfree) * fs.f_bsize,
          static_cast<int64_t>(fs.f_files - fs.f_ffree)};
}

DiskUsage DiskWatch::Measure(int processes) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point now = Clock::now();
  auto files_max = static_cast<int64_t>(InodesOf(bytes_max_));
  Taken taken = MeasureTaken();
  // Others use the disk too, but growth like this is worth a look at once.
  bool grew =
      taken.bytes - walked_.bytes > bytes_max_ / 4 || taken.files - walked_.files > files_max / 4;
  if (last_.full || (now < next_ && !grew && processes >= 0)) return last_;
  TreeSum sum;
  bool counted = sum.Add(OpenToRead(directory_.get(), "."), 0);
  struct stat st {};
  if (processes >= 0 && taken.bytes - first_.bytes - sum.bytes() > kUnexplainedBytes &&
      ::fstat(directory_.get(), &st) == 0) {
    sum.AddDeleted(processes, st.st_dev);
  }
  last_.bytes = sum.bytes();
  last_.full = !counted || sum.bytes() >= bytes_max_ || sum.files() >= files_max;
  walked_ = taken;
  next_ = Clock::now() + kRestPerWalk * (Clock::now() - now);
  return last_;
}

}  // namespace sandbox
