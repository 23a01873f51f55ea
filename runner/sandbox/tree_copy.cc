// SPDX-License-Identifier: Apache-2.0
#include "sandbox/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr int64_t kBytesInMegabyte = 1'000'000;
constexpr mode_t kPermissions = 0777;  // A copy has another owner: no set-user-id.

class Copier {
 public:
  Copier(const CopyLimits& limits, std::optional<Owner> owner, const CopyProgress& progress)
      : limits_(limits), owner_(owner), progress_(progress) {
    if (limits.leaves_out >= 0) (void)::fstat(limits.leaves_out, &left_out_);
  }

  Status CopyInside(int from, int to, int depth) {
    if (depth > sys::kTreeDepthMax) {
      return Error{Code::kUnsupported,
                   "the tree is deeper than " + std::to_string(sys::kTreeDepthMax)};
    }
    std::vector<std::string> names = TRY(sys::DirectoryNames(from));
    for (const std::string& name : names) {
      path_.push_back(name);
      TRY(CopyEntry(from, to, name, depth));
      path_.pop_back();
    }
    return Ok();
  }

  // Returns the path where it failed: of a long one the beginning and the end.
  std::string path() const {
    constexpr size_t kHead = 60;
    constexpr size_t kTail = 100;
    std::string path;
    for (const std::string& name : path_) path += (path.empty() ? "" : "/") + name;
    if (path.size() <= kHead + kTail) return path;
    return path.substr(0, kHead) + "..." + path.substr(path.size() - kTail);
  }

  const CopySum& sum() const { return sum_; }

 private:
  Status CopyEntry(int from, int to, const std::string& name, int depth) {
    struct stat st {};
    if (::fstatat(from, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return Errno("fstatat");
    const bool left_out = st.st_dev == left_out_.st_dev && st.st_ino == left_out_.st_ino;
    if (left_out && limits_.leaves_out >= 0) return Ok();
    TRY(Count(0, 1));
    if (S_ISLNK(st.st_mode)) return CopyLink(from, to, name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return LeaveOut();
    // A file that became something else meanwhile: nothing waits for its other end.
    Result<Fd> source = sys::OpenUnmounted(from, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!S_ISDIR(st.st_mode)) {
      if (!source.ok()) return LeaveOut();
      return CopyFile(source.value(), to, name);
    }
    if (::mkdirat(to, name.c_str(), S_IRWXU) != 0) return Errno("mkdirat");
    Fd made = TRY(sys::OpenAt(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!source.ok()) {
      TRY(LeaveOut());
    } else {
      TRY(CopyInside(source.value().get(), made.get(), depth + 1));
    }
    return Finish(made.get(), st);
  }

  Status CopyLink(int from, int to, const std::string& name) {
    char text[PATH_MAX];
    ssize_t size = ::readlinkat(from, name.c_str(), text, sizeof text);
    if (size < 0 || size == sizeof text) return LeaveOut();
    std::string target(text, static_cast<size_t>(size));
    if (::symlinkat(target.c_str(), to, name.c_str()) != 0) return Errno("symlinkat");
    if (owner_ &&
        ::fchownat(to, name.c_str(), owner_->uid, owner_->gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return Errno("fchownat");
    }
    return Ok();
  }

  Status CopyFile(const Fd& source, int to, const std::string& name) {
    struct stat st {};
    if (::fstat(source.get(), &st) != 0) return Errno("fstat");
    if (!S_ISREG(st.st_mode)) return LeaveOut();
    Fd made = TRY(sys::OpenAt(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (::ioctl(made.get(), FICLONE, source.get()) == 0) {
      TRY(Count(st.st_size, 0));
    } else {
      TRY(CopyBytes(source.get(), made.get()));
    }
    return Finish(made.get(), st);
  }

  // Copies to the file's own end, not by the size that it had: a file that grows meanwhile stays
  // within the limit.
  Status CopyBytes(int source, int made) {
    for (;;) {
      ssize_t copied = ::copy_file_range(source, nullptr, made, nullptr, kChunkBytes, 0);
      if (copied < 0 && errno == EINTR) continue;
      if (copied < 0) return ReadAndWrite(source, made);
      if (copied == 0) return Ok();
      TRY(Count(copied, 0));
    }
  }

  // Between file systems that copy_file_range(2) does not take. Goes on where that stopped.
  Status ReadAndWrite(int source, int made) {
    std::string chunk(kChunkBytes, '\0');
    for (;;) {
      ssize_t size = ::read(source, chunk.data(), chunk.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Errno("read");
      if (size == 0) return Ok();
      TRY(Count(size, 0));
      TRY(sys::WriteAll(made, std::string_view(chunk).substr(0, static_cast<size_t>(size))));
    }
  }

  // Owner before mode: a change of owner clears bits.
  Status Finish(int made, const struct stat& st) {
    if (owner_ && ::fchown(made, owner_->uid, owner_->gid) != 0) return Errno("fchown");
    if (::fchmod(made, st.st_mode & kPermissions) != 0) return Errno("fchmod");
    timespec times[2] = {st.st_atim, st.st_mtim};
    if (::futimens(made, times) != 0) return Errno("futimens");
    return Ok();
  }

  Status LeaveOut() {
    ++sum_.left_out;
    return Ok();
  }

  Status Count(int64_t bytes, int64_t files) {
    sum_.bytes += bytes;
    sum_.files += files;
    if (sum_.bytes <= limits_.bytes_max && sum_.files <= limits_.files_max) {
      auto now = std::chrono::steady_clock::now();
      if (now - told_ < progress_.every) return Ok();
      told_ = now;
      progress_.tell(sum_);
      return Ok();
    }
    bool large = sum_.bytes > limits_.bytes_max;
    return Error{Code::kUnsupported,
                 large ? "more than " + std::to_string(limits_.bytes_max) + " bytes"
                       : "more than " + std::to_string(limits_.files_max) + " files"};
  }

  const CopyLimits& limits_;
  std::optional<Owner> owner_;
  const CopyProgress& progress_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  struct stat left_out_ {};
  std::vector<std::string> path_;
  CopySum sum_;
};

}  // namespace

CopyProgress LogCopying() {
  CopyProgress progress;
  progress.tell = [](const CopySum& sum) {
    logging::Info("copying the checkout",
                  {{"files", std::to_string(sum.files)},
                   {"megabytes", std::to_string(sum.bytes / kBytesInMegabyte)}});
  };
  return progress;
}

Result<CopySum> CopyTree(int from, int to, const CopyLimits& limits, std::optional<Owner> owner,
                         const CopyProgress& progress) {
  Copier copier(limits, owner, progress);
  Status copied = copier.CopyInside(from, to, 0);
  if (copied.ok()) return copier.sum();
  const std::string path = copier.path();
  return std::move(copied).Context(path.empty() ? "." : path).error();
}

}  // namespace sandbox
