// SPDX-License-Identifier: Apache-2.0
#include "change/tree_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/sys.h"

namespace change {
namespace {

constexpr int kPlace = O_PATH | O_NOFOLLOW;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

std::string Parent(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the type bits of what lies at `path`, links not followed; 0 for nothing, also if
// something above it is not a directory.
Result<mode_t> TypeAt(int root, const std::string& path) {
  Result<Fd> place = sys::OpenBeneath(root, path, kPlace);
  if (!place.ok()) {
    if (sys::IsAbsent(place.error())) return mode_t{0};
    return std::move(place).error();
  }
  struct stat st {};
  if (::fstat(place.value().get(), &st) != 0) return Errno("fstat");
  return static_cast<mode_t>(st.st_mode & S_IFMT);
}

Error InTheWay(const std::string& path) {
  return Error{Code::kInvalid, "the patch does not apply: " + path + " is in the way"};
}

Error ChangedMeanwhile(const std::string& path) {
  return Error{Code::kInvalid,
               path + " was changed while the patch was being applied, and stays as it is"};
}

// The inode's number is not compared: in an overlay, a file gets another one when it is renamed.
bool IsUnchanged(const struct stat& before, const struct stat& now) {
  return before.st_mode == now.st_mode && before.st_size == now.st_size &&
         before.st_mtim.tv_sec == now.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
}

// Returns whether the file is there as it was planned on, or absent if `planned` is null.
bool IsAsPlanned(int directory, const std::string& name, const struct stat* planned) {
  struct stat now {};
  const bool there = ::fstatat(directory, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
  if (planned == nullptr) return !there && errno == ENOENT;
  return there && IsUnchanged(*planned, now);
}

// Returns whether a rename failed because the two places' file systems cannot do this kind of it.
bool IsUnsupported(int error) { return error == EINVAL || error == ENOSYS || error == EXDEV; }

// True if `edit` removes every file beneath `path`, so that the directory goes too.
Result<bool> Empties(int root, const std::string& path, const TreeEdit& edit, int depth) {
  if (depth > 500) return false;
  Fd directory = TRY(sys::OpenBeneath(root, path, kDirectory));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
  if (stream == nullptr) return Errno("fdopendir");
  (void)directory.Take();  // The stream's now.
  bool found = false;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    found = true;
    std::string inner = path + "/" + name;
    if (edit.removed.contains(inner)) continue;
    if (TRY(TypeAt(root, inner)) != S_IFDIR) return false;
    if (!TRY(Empties(root, inner, edit, depth + 1))) return false;
  }
  return found;  // A directory that was empty before is not ours to remove.
}

Status CheckPlace(int root, const std::string& path, const TreeEdit& edit) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    if (edit.written.contains(above)) return InTheWay(above);
    if (edit.removed.contains(above)) continue;  // A file makes room for a directory.
    mode_t type = TRY(TypeAt(root, above));
    if (type == 0) continue;
    if (type != S_IFDIR) return InTheWay(above);
  }
  mode_t type = TRY(TypeAt(root, path));
  if (type == 0 || edit.removed.contains(path)) return Ok();
  if (type == S_IFDIR && TRY(Empties(root, path, edit, 0))) return Ok();
  return InTheWay(path);
}

// Gives what root puts into a checkout to the directory's owner: the steps that follow run as that
// user.
Status GiveToOwnerOf(int directory, const std::string& name) {
  struct stat st {};
  if (::geteuid() != 0) return Ok();
  if (::fstat(directory, &st) != 0 ||
      ::fchownat(directory, name.c_str(), st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return Errno("chown " + name);
  }
  return Ok();
}

// A directory in the checkout that holds the new files until all of them are written.
class Staging {
 public:
  explicit Staging(int root) : root_(root) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    for (int i = 0; i < count_; ++i)
      (void)::unlinkat(directory_.get(), std::to_string(i).c_str(), 0);
    if (directory_.valid()) (void)::unlinkat(root_, name_.c_str(), AT_REMOVEDIR);
  }

  Status Open() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      name_ = ".agentic-ci-apply." + std::to_string(::getpid()) + "." + std::to_string(attempt);
      if (::mkdirat(root_, name_.c_str(), 0700) == 0) {
        directory_ = TRY(sys::OpenBeneath(root_, name_, kDirectory));
        return Ok();
      }
      if (errno != EEXIST) return Errno("mkdir " + name_);
    }
    return Error{Code::kIo, "no free name for a temporary directory in the checkout"};
  }

  Status Add(const TreeEdit::NewFile& file) {
    std::string name = std::to_string(count_++);
    if (file.mode == 0120000) {
      if (::symlinkat(file.bytes.c_str(), directory_.get(), name.c_str()) != 0)
        return Errno("symlink");
      return Ok();
    }
    Fd fd = TRY(sys::OpenAt(directory_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                            file.mode == 0100755 ? 0777 : 0666));  // The umask decides, as for git.
    return sys::WriteAll(fd.get(), file.bytes);
  }

  // Moves the `index`-th file added to where `planned` lies, or nothing if it is null. The two are
  // exchanged: what was saved there at the last moment is seen then, and put back.
  Status MoveTo(int index, int directory, const std::string& path, const struct stat* planned) {
    const std::string staged = std::to_string(index);
    const std::string name = BaseName(path);
    const auto move = [&](unsigned flags) {
      return ::renameat2(directory_.get(), staged.c_str(), directory, name.c_str(), flags) == 0;
    };
    const unsigned kind = planned != nullptr ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (move(kind)) {
      if (planned != nullptr && !IsAsPlanned(directory_.get(), staged, planned)) {
        return move(RENAME_EXCHANGE) ? ChangedMeanwhile(path) : Errno("rename " + path);
      }
    } else if (errno == EEXIST || errno == ENOENT) {
      return ChangedMeanwhile(path);
    } else if (!IsUnsupported(errno)) {
      return Errno("rename " + path);
    } else if (!IsAsPlanned(directory, name, planned)) {
      return ChangedMeanwhile(path);
    } else if (!move(0)) {
      return Errno("rename " + path);
    }
    return GiveToOwnerOf(directory, name);
  }

  // Removes a file, unless it is not what it was any more.
  Status TakeAway(int directory, const std::string& path, const struct stat& planned) {
    const std::string staged = std::to_string(count_++);
    const std::string name = BaseName(path);
    if (::renameat(directory, name.c_str(), directory_.get(), staged.c_str()) == 0) {
      if (IsAsPlanned(directory_.get(), staged, &planned)) return Ok();
      if (::renameat2(directory_.get(), staged.c_str(), directory, name.c_str(),
                      RENAME_NOREPLACE) == 0) {
        return ChangedMeanwhile(path);
      }
      --count_;  // It is not ours to remove, wherever it lies.
      return Errno("rename " + path);
    }
    if (errno == ENOENT) return Ok();
    if (!IsUnsupported(errno)) return Errno("unlink " + path);
    if (!IsAsPlanned(directory, name, &planned)) return ChangedMeanwhile(path);
    return ::unlinkat(directory, name.c_str(), 0) == 0 ? Ok() : Status(Errno("unlink " + path));
  }

 private:
  int root_;
  std::string name_;
  Fd directory_;
  int count_ = 0;
};

// Removes the file, then every directory above it that is empty now. A sparse checkout may have
// left it out.
Status Remove(int root, const std::string& path, const struct stat& planned, Staging& staging) {
  Result<Fd> opened = sys::OpenBeneath(root, Parent(path), kDirectory);
  if (!opened.ok() && sys::IsAbsent(opened.error())) return Ok();
  Fd parent = TRY(std::move(opened));
  TRY(staging.TakeAway(parent.get(), path, planned));
  for (std::string at = Parent(path); at != "."; at = Parent(at)) {
    parent = TRY(sys::OpenBeneath(root, Parent(at), kDirectory));
    // Not empty, or not ours to remove.
    if (::unlinkat(parent.get(), BaseName(at).c_str(), AT_REMOVEDIR) != 0) return Ok();
  }
  return Ok();
}

Result<Fd> MakeParent(int root, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    Fd parent = TRY(sys::OpenBeneath(root, Parent(above), kDirectory));
    if (::mkdirat(parent.get(), BaseName(above).c_str(), 0777) == 0) {
      TRY(GiveToOwnerOf(parent.get(), BaseName(above)));
    } else if (errno != EEXIST) {
      return Errno("mkdir " + above);
    }
  }
  return sys::OpenBeneath(root, Parent(path), kDirectory);
}

const struct stat* Find(const PlannedOn& planned_on, const std::string& path) {
  const auto found = planned_on.find(path);
  return found == planned_on.end() ? nullptr : &found->second;
}

Status Move(int root, const TreeEdit& edit, const PlannedOn& planned_on, Staging& staging) {
  for (const std::string& path : edit.removed) {
    const struct stat* planned = Find(planned_on, path);
    if (planned == nullptr || edit.written.contains(path)) continue;
    TRY(Remove(root, path, *planned, staging));
  }
  int index = 0;
  for (const auto& [path, file] : edit.written) {
    Fd parent = TRY(MakeParent(root, path));
    TRY(staging.MoveTo(index++, parent.get(), path, Find(planned_on, path)));
  }
  return Ok();
}

// To write the new files takes a while.
Status CheckUnchanged(int root, const TreeEdit& edit, const PlannedOn& planned_on) {
  for (const auto& [path, file] : edit.written) TRY(CheckPlace(root, path, edit));
  for (const std::string& path : edit.removed) {
    const struct stat* planned = Find(planned_on, path);
    Result<Fd> parent = sys::OpenBeneath(root, Parent(path), kDirectory);
    if (planned != nullptr &&
        (!parent.ok() || !IsAsPlanned(parent.value().get(), BaseName(path), planned))) {
      return ChangedMeanwhile(path);
    }
  }
  return Ok();
}

}  // namespace

Status WriteTree(int root, const TreeEdit& edit, const PlannedOn& planned_on) {
  for (const auto& [path, file] : edit.written) TRY(CheckPlace(root, path, edit));
  Staging staging(root);
  TRY(staging.Open());
  for (const auto& [path, file] : edit.written) TRY(staging.Add(file));
  TRY(CheckUnchanged(root, edit, planned_on));
  Status moved = Move(root, edit, planned_on, staging)
                     .Context("applying the patch, which is now partly applied");
  if (moved.ok()) return moved;
  Error error = std::move(moved).error();
  error.code = Code::kIo;
  return error;
}

}  // namespace change
