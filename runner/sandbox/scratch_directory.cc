// SPDX-License-Identifier: Apache-2.0
#include "sandbox/scratch_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <utility>

#include "base/sys.h"
#include "base/tree.h"
#include "sandbox/host.h"
#include "sandbox/limit/descendants.h"

namespace sandbox {
namespace {

constexpr char kScratchTemplate[] = "agentic-ci-scratch.XXXXXX";
// Another run's sweep meets a directory between two calls of its maker: seldom once.
constexpr int kTriesMax = 100;

// Kills the agent of a run whose supervisor and first process were killed at once. In tier landlock
// root's agent has a user of its own, whom its home belongs to; no other process has that user.
void KillAgentOf(int scratch) {
  struct stat st {};
  if (::geteuid() != 0 || ::fstatat(scratch, "home", &st, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!IsFreeId(st.st_uid)) return;
  KillUser(st.st_uid);
}

// Removes what killed runs left: its lock is free. One that is being made is locked a moment after
// it is there, and may be removed before: its maker then makes another (MakeLocked).
void Sweep(int place) {
  Result<std::vector<std::string>> names = sys::DirectoryNames(place);
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    struct stat st {};
    if (!name.starts_with(kScratchPrefix)) continue;
    if (::fstatat(place, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (st.st_uid != ::geteuid() || !S_ISDIR(st.st_mode)) continue;
    Result<Fd> fd = sys::OpenAt(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok() || ::flock(fd.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    KillAgentOf(fd.value().get());
    (void)sys::RemoveTree(place, name);
  }
}

// Overlayfs makes a whiteout of what it deletes, and marks a directory that was deleted and made
// again with an attribute. Without them it mounts all the same, and fails in the middle of a run.
Status TryLayer(int directory) {
  Fd trial = TRY(sys::OpenAt(directory, "trial", O_WRONLY | O_CREAT | O_EXCL, 0600));
  if (::fsetxattr(trial.get(), "user.overlay.trial", "y", 1, 0) != 0) {
    return Errno("user attributes");
  }
  if (::syscall(SYS_renameat2, directory, "trial", directory, "moved", RENAME_WHITEOUT) != 0) {
    return Errno("whiteouts");
  }
  for (const char* name : {"trial", "moved"}) (void)::unlinkat(directory, name, 0);
  return Ok();
}

// Fails unless every user can search `place` and all directories above it.
Status TryWay(const std::string& place) {
  for (size_t end = 1; end != std::string::npos && end <= place.size();) {
    end = place.find('/', end);
    const std::string above = place.substr(0, end);
    struct stat st {};
    if (::stat(above.c_str(), &st) != 0) return Errno("stat " + above);
    if ((st.st_mode & S_IXOTH) == 0) {
      return Error{Code::kUnsupported, "the agent's user cannot enter " + above};
    }
    if (end != std::string::npos) ++end;
  }
  return Ok();
}

}  // namespace

Result<ScratchDirectory> ScratchDirectory::Make(const std::vector<std::string>& places, Use use) {
  std::string reasons;
  auto refuse = [&](const std::string& place, const std::string& why) {
    reasons += (reasons.empty() ? "" : "; ") + place + ": " + why;
  };
  for (const std::string& wanted : places) {
    Result<std::string> place = sys::RealPath(wanted);
    if (!place.ok()) continue;
    ScratchDirectory made;
    made.place_ = std::move(place).value();
    Status way = use == Use::kEntered ? TryWay(made.place_) : Ok();
    if (!way.ok()) {
      refuse(made.place_, way.error().what);
      continue;
    }
    Result<Fd> parent = sys::Open(made.place_, O_RDONLY | O_DIRECTORY);
    if (!parent.ok()) {
      refuse(made.place_, parent.error().what);
      continue;
    }
    made.parent_ = std::move(parent).value();
    Sweep(made.parent_.get());
    Status locked = made.MakeLocked();
    if (!locked.ok()) {
      refuse(made.place_, locked.error().what);
      continue;
    }
    Status serves = use == Use::kLayers ? TryLayer(made.fd_.get()) : Ok();
    if (serves.ok()) return made;
    refuse(made.place_, serves.error().what);
  }
  if (use != Use::kLayers) {
    return Error{Code::kUnsupported, "no directory can be used: " + reasons,
                 "TMPDIR=DIRECTORY agentic-ci run ..."};
  }
  return Error{Code::kUnsupported,
               "the kernel's memory file system has no user attributes (Linux 6.6), and no "
               "directory serves in its place: " +
                   reasons,
               "TMPDIR=DIRECTORY agentic-ci run ..., on ext4, XFS or Btrfs"};
}

Status ScratchDirectory::MakeLocked() {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    std::string path = place_ + "/" + kScratchTemplate;
    if (::mkdtemp(path.data()) == nullptr) return Errno("mkdtemp");
    std::string name = path.substr(place_.size() + 1);
    Result<Fd> made = sys::OpenAt(parent_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!made.ok() && made.error().code != Code::kNotFound) return std::move(made).error();
    if (!made.ok()) continue;  // Another run's sweep was quicker, as in the two cases below.
    if (::flock(made.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat st {};
    if (::fstat(made.value().get(), &st) != 0 || st.st_nlink == 0) continue;
    name_ = std::move(name);
    fd_ = std::move(made).value();
    return Ok();
  }
  return Error{Code::kIo, "other runs remove what is made there"};
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : place_(std::move(other.place_)),
      name_(std::exchange(other.name_, {})),
      parent_(std::move(other.parent_)),
      fd_(std::move(other.fd_)) {}

bool ScratchDirectory::HasNeighbours() const {
  Result<std::vector<std::string>> names = sys::DirectoryNames(parent_.get());
  if (!names.ok()) return true;
  for (const std::string& name : names.value()) {
    if (!name.starts_with(kScratchPrefix) || name == name_) continue;
    Result<Fd> other = sys::OpenAt(parent_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!other.ok() && other.error().code == Code::kNotFound) continue;
    if (!other.ok() || ::flock(other.value().get(), LOCK_SH | LOCK_NB) != 0) return true;
  }
  return false;
}

void ScratchDirectory::Remove() const {
  if (!name_.empty()) (void)sys::RemoveTree(parent_.get(), name_);
}

ScratchDirectory::~ScratchDirectory() { Remove(); }

}  // namespace sandbox
