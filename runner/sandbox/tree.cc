// SPDX-License-Identifier: Apache-2.0
#include "sandbox/tree.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"

namespace sandbox {
namespace {

using Kind = MountStep::Kind;

// The build site: a small tmpfs that becomes the root for the time of building, with the host at
// /host, the tree at /new and everything writable on one size-limited tmpfs at /scratch.
constexpr char kSite[] = "/tmp";
constexpr char kHost[] = "/host";
constexpr char kNew[] = "/new";
constexpr char kScratch[] = "/scratch";
constexpr char kEmptyFile[] = "/empty-file";
constexpr char kEmptyDirectory[] = "/empty-directory";
constexpr char kUnreadableDirectory[] = "/unreadable-directory";
constexpr char kLower[] = "/lower";
constexpr char kOverFiles[] = "/over-file-";

// The tree's own directories and small files; nobody else writes there.
constexpr char kRootOptions[] = "size=4m,nr_inodes=4k,mode=755";

Status Mount(const std::string& source, const std::string& target, const char* type,
             unsigned long flags, const std::string& options) {
  const char* data = options.empty() ? nullptr : options.c_str();
  if (::mount(source.c_str(), target.c_str(), type, flags, data) != 0) {
    return Errno("mount " + std::string(type) + " at " + target);
  }
  return Ok();
}

Status MakeDirectory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return Errno("mkdir " + path);
  // mkdir honours the umask; a sticky /tmp must be what it says. An existing directory of the host
  // is not ours to change, and refuses.
  (void)::chmod(path.c_str(), mode);
  return Ok();
}

Status SetAttributes(const std::string& path, uint64_t set, bool recursive) {
  mount_attr attributes{};
  attributes.attr_set = set;
  unsigned flags = recursive ? AT_RECURSIVE : 0;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, path.c_str(), flags, &attributes, sizeof attributes) !=
      0) {
    return Errno("mount_setattr " + path);
  }
  return Ok();
}

// Recursive, because a user namespace may not split mounts it inherited; then read-only as a whole.
Status Bind(const std::string& source, const std::string& target, uint64_t attributes) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return Errno("bind " + source);
  }
  return SetAttributes(target, attributes, true);
}

std::string Upper(const std::string& name) { return std::string(kScratch) + "/" + name + "/upper"; }

// The upper directory takes the mode of the lower one: overlayfs shows the upper's.
Status PrepareLayers(const std::string& name, const std::string& lower) {
  struct stat st {};
  mode_t mode = ::stat(lower.c_str(), &st) == 0 ? st.st_mode & 07777 : 0755;
  TRY(sys::MakeDirectories(Upper(name)));
  TRY(MakeDirectory(Upper(name), mode | S_IRWXU));
  return MakeDirectory(std::string(kScratch) + "/" + name + "/work", 0700);
}

// Every lower layer gets a name of ours: the mount's options are text in which the host's names
// could hold commas and colons.
std::string Lower(const std::string& name) { return std::string(kLower) + "/" + name; }

Status BindLower(const std::string& source, const std::string& name) {
  TRY(MakeDirectory(Lower(name), 0755));
  if (::mount(source.c_str(), Lower(name).c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return Errno("bind " + source);
  }
  return Ok();
}

// Of the layers `name`, which are all there.
Status MountOverlay(const std::string& name, const std::string& target) {
  std::string options = "lowerdir=" + Lower(name) + ",upperdir=" + Upper(name) +
                        ",workdir=" + kScratch + "/" + name + "/work,userxattr";
  return Mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options);
}

// A file of ours beneath an upper directory that is not mounted yet.
Status WriteBeneath(const std::string& top, const std::string& relative, const std::string& content,
                    mode_t mode) {
  std::string path = top + "/" + relative;
  TRY(sys::MakeDirectories(path.substr(0, path.rfind('/'))));
  return sys::WriteFile(path, content, mode);
}

// overlayfs marks a directory that was deleted and made again with a user attribute. Without them
// it mounts all the same, and fails later, in the middle of the agent's work.
Status CheckAttributes() {
  if (::setxattr(kScratch, "user.overlay.trial", "y", 1, 0) == 0) return Ok();
  Error error = Errno("user attributes on tmpfs");
  error.code = Code::kUnsupported;
  error.hint = "use Linux 6.6 or newer";
  return error;
}

class Builder {
 public:
  Builder(const SandboxPlan& plan, Fd checkout) : plan_(plan), checkout_(std::move(checkout)) {}

  Result<Fd> Build();

 private:
  Status EnterSite();
  Status Carry(const MountStep& step);
  Status CarryWorkspace(const MountStep& step);
  Status CarryOverlay(const MountStep& step, const std::string& target);
  Status CarryOverFile(const MountStep& step, const std::string& target);
  Status CarryMask(const MountStep& step, const std::string& target);
  Status Leave();

  const SandboxPlan& plan_;
  Fd checkout_;
  int over_files_ = 0;
};

Status Builder::EnterSite() {
  // Nothing done here may reach the host's mount table.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Errno("making mounts private");
  }
  TRY(Mount("tmpfs", kSite, "tmpfs", MS_NOSUID | MS_NODEV, kRootOptions));
  std::string site = kSite;
  for (const char* name : {kHost, kNew, kScratch, kEmptyDirectory, kUnreadableDirectory, kLower}) {
    TRY(MakeDirectory(site + name, 0755));
  }
  TRY(sys::WriteFile(site + kEmptyFile, "", 0));
  if (::chmod((site + kUnreadableDirectory).c_str(), 0) != 0) return Errno("chmod");
  if (::syscall(SYS_pivot_root, kSite, (site + kHost).c_str()) != 0) return Errno("pivot_root");
  if (::chdir("/") != 0) return Errno("chdir");

  TRY(Mount("tmpfs", kScratch, "tmpfs", MS_NOSUID | MS_NODEV,
            "mode=755,size=" + std::to_string(plan_.limits.disk_bytes)));
  TRY(CheckAttributes());
  TRY(Mount("tmpfs", kNew, "tmpfs", MS_NOSUID | MS_NODEV, kRootOptions));
  return Ok();
}

Status Builder::CarryWorkspace(const MountStep& step) {
  if (checkout_.valid()) {
    TRY(MakeDirectory(Lower(step.scratch), 0755));
    if (::syscall(SYS_move_mount, checkout_.get(), "", AT_FDCWD, Lower(step.scratch).c_str(),
                  MOVE_MOUNT_F_EMPTY_PATH) != 0) {
      return Errno("move_mount of the checkout");
    }
  } else {
    TRY(BindLower(kHost + step.source, step.scratch));
  }
  TRY(PrepareLayers(step.scratch, Lower(step.scratch)));
  for (const WorkspaceFile& file : plan_.workspace_files) {
    TRY(WriteBeneath(Upper(step.scratch), file.path, file.content, 0644));
  }
  return MountOverlay(step.scratch, kNew + step.target);
}

Status Builder::CarryOverlay(const MountStep& step, const std::string& target) {
  TRY(BindLower(kHost + step.source, step.scratch));
  TRY(PrepareLayers(step.scratch, Lower(step.scratch)));
  return MountOverlay(step.scratch, target);
}

Status Builder::CarryOverFile(const MountStep& step, const std::string& target) {
  std::string place = kOverFiles + std::to_string(over_files_++);
  TRY(sys::WriteFile(place, step.content, 0644));
  return Bind(place, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

Status Builder::CarryMask(const MountStep& step, const std::string& target) {
  const char* empty = step.is_directory ? kUnreadableDirectory : kEmptyFile;
  return Bind(empty, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

Status Builder::Carry(const MountStep& step) {
  std::string target = kNew + step.target;
  switch (step.kind) {
    case Kind::kDirectory:
      return MakeDirectory(target, step.mode);
    case Kind::kFile:
      return sys::WriteFile(target, step.content, step.mode);
    case Kind::kUpperFile:
      return WriteBeneath(Upper(step.scratch), step.target.substr(step.target.find('/', 1) + 1),
                          step.content, step.mode);
    case Kind::kSymlink:
      if (::symlink(step.source.c_str(), target.c_str()) != 0 && errno != EEXIST) {
        return Errno("symlink " + step.target);
      }
      return Ok();
    case Kind::kBind:
      return Bind(kHost + step.source, target,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    case Kind::kDevice:
      TRY(sys::WriteFile(target, "", 0666));
      return Bind(kHost + step.source, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    case Kind::kOverlay:
      return CarryOverlay(step, target);
    case Kind::kOverFile:
      return CarryOverFile(step, target);
    case Kind::kWorkspace:
      return CarryWorkspace(step);
    case Kind::kScratch: {
      std::string place = std::string(kScratch) + "/" + step.scratch;
      TRY(MakeDirectory(place, step.mode));
      return Bind(place, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    case Kind::kProc:
      return Mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
    case Kind::kDevPts:
      return Mount("devpts", target, "devpts", MS_NOSUID | MS_NOEXEC,
                   "newinstance,ptmxmode=0666,mode=620");
    case Kind::kEmpty:
      return Bind(kEmptyDirectory, target,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    case Kind::kMask:
      return CarryMask(step, target);
    case Kind::kReadOnly:
      return SetAttributes(target == "/new/" ? kNew : target, MOUNT_ATTR_RDONLY, false);
  }
  return Error{Code::kBug, "unknown mount step"};
}

// The tree becomes the root; the build site and, with it, the host are unmounted.
Status Builder::Leave() {
  if (::chdir(kNew) != 0) return Errno("chdir");
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return Errno("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return Errno("umount2");
  if (::chdir("/") != 0) return Errno("chdir");
  return Ok();
}

Result<Fd> Builder::Build() {
  TRY(EnterSite());
  for (const MountStep& step : plan_.mounts) TRY(Carry(step));
  Fd upper = TRY(sys::Open(Upper("workspace"), O_RDONLY | O_DIRECTORY));
  TRY(Leave());
  return upper;
}

}  // namespace

Result<Fd> BuildTree(const SandboxPlan& plan, Fd checkout) {
  return Builder(plan, std::move(checkout)).Build();
}

}  // namespace sandbox
