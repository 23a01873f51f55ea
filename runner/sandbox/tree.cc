// SPDX-License-Identifier: Apache-2.0
#include "sandbox/tree.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "sandbox/limit/usage.h"
#include "sandbox/user_namespace.h"

namespace sandbox {
namespace {

// The machine has 4,096 terminals unless it says otherwise (sysctl kernel.pty.max).
constexpr char kTerminalOptions[] = "newinstance,ptmxmode=0666,mode=620,max=512";

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
// The place where a new file system is mounted before it has its own.
constexpr char kStage[] = "/stage";
constexpr char kOverFiles[] = "/over-file-";

// The tree's own directories, small files and places of mounts; nothing else writes there.
constexpr char kRootOptions[] = "size=4m,nr_inodes=64k,mode=755";

Status Mount(const std::string& source, const std::string& target, const char* type,
             unsigned long flags, const std::string& options) {
  const char* data = options.empty() ? nullptr : options.c_str();
  if (::mount(source.c_str(), target.c_str(), type, flags, data) != 0) {
    return NamespaceErrno("mount " + std::string(type) + " at " + target);
  }
  return Ok();
}

// A directory of the build site, whose paths are all ours.
Status MakeDirectory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return Errno("mkdir " + path);
  // mkdir honours the umask; a sticky /tmp must be what it says.
  (void)::chmod(path.c_str(), mode);
  return Ok();
}

Status SetAttributes(int mount, uint64_t set, bool recursive) {
  mount_attr attributes{};
  attributes.attr_set = set;
  unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
  if (::syscall(SYS_mount_setattr, mount, "", flags, &attributes, sizeof attributes) != 0) {
    return NamespaceErrno("mount_setattr");
  }
  return Ok();
}

// Clones what stands at `path` beneath `directory` (or at `directory` itself, when it is empty),
// with all that is mounted in it, as a mount of its own that stands nowhere yet. Recursive, because
// a user namespace may not split mounts it inherited.
Result<Fd> CloneTree(int directory, const std::string& path) {
  Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, directory, path.c_str(),
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH)));
  if (!tree.valid()) return Errno("open_tree " + path);
  return tree;
}

Status MoveMount(int from, const char* from_path, int to) {
  if (::syscall(SYS_move_mount, from, from_path, to, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return Errno("move_mount");
  }
  return Ok();
}

constexpr uint64_t kSealed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// "/a/b" -> {"/a", "b"}; the parent of "/a" is "/".
std::pair<std::string, std::string> SplitLeaf(const std::string& path) {
  size_t slash = path.rfind('/');
  ENSURE(slash != std::string::npos && slash + 1 < path.size());
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
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

// Every lower layer gets a name that we choose: the mount's options are text in which the host's
// names could hold commas and colons.
std::string Lower(const std::string& name) { return std::string(kLower) + "/" + name; }

// A file of our own beneath an upper directory that is not mounted yet.
Status WriteBeneath(const std::string& top, const std::string& relative, const std::string& content,
                    mode_t mode) {
  std::string path = top + "/" + relative;
  TRY(sys::MakeDirectories(path.substr(0, path.rfind('/'))));
  return sys::WriteFile(path, content, mode);
}

// A file or link of the checkout that the agent is not to see.
Status RemoveBeneath(int top, const std::string& relative) {
  auto [parent, leaf] = SplitLeaf("/" + relative);
  Fd above = TRY(sys::OpenInRoot(top, parent, O_RDONLY | O_DIRECTORY));
  if (::unlinkat(above.get(), leaf.c_str(), 0) != 0 && errno != ENOENT) {
    return Errno("hiding " + relative);
  }
  return Ok();
}

// Paths of steps are looked up as the sandbox's own processes will: links of an image lead nowhere
// but into the image (runc's CVE-2021-30465). The one root that paths are ever walked from is
// `root_`.
class Builder {
 public:
  Builder(const SandboxPlan& plan, DiskLayers disk, std::vector<Fd> opened)
      : plan_(plan), disk_(std::move(disk)), opened_(std::move(opened)) {}

  Result<TreeLayers> Build();

 private:
  Status EnterSite();
  Status MountScratch();
  std::string OverlayOptions(const std::string& lower, const std::string& name) const;
  Status Carry(const MountStep& step);
  Status MakeInside(const std::string& target, mode_t mode);
  Status WriteInside(const std::string& target, const std::string& content, mode_t mode);
  Status LinkInside(const std::string& target, const std::string& text);
  Result<Fd> Find(const std::string& target, int flags = O_PATH) const;
  Status Attach(const Fd& tree, const std::string& target) const;
  Status Bind(const std::string& source, const std::string& target, uint64_t attributes) const;
  Status MountNew(const char* type, unsigned long flags, const std::string& options,
                  const std::string& target) const;
  Result<Fd> OpenSource(const MountStep& step);
  Status PutLower(const MountStep& step);
  Status CarryLayer(const MountStep& step);
  Status CarryImage();
  Status CarryBind(const MountStep& step);
  Status CarryShown(const MountStep& step);
  Status CarryDevice(const MountStep& step);
  Status CarryWorkspace(const MountStep& step);
  Status CarryOverlay(const MountStep& step);
  Status CarryOverFile(const MountStep& step);
  Status CarryScratch(const MountStep& step);
  Status CarryMask(const MountStep& step);
  Status CarryWritable(const MountStep& step);
  Status CarrySeal(const MountStep& step);
  Status Leave();

  const SandboxPlan& plan_;
  DiskLayers disk_;
  std::vector<Fd> opened_;  // Descriptors in the order of their steps.
  size_t next_opened_ = 0;
  Fd root_;  // The tree under construction.
  int layers_ = 0;
  int shown_ = 0;
  int over_files_ = 0;
};

Status Builder::EnterSite() {
  // Nothing done here may reach the host's mount table.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return NamespaceErrno("making mounts private");
  }
  TRY(Mount("tmpfs", kSite, "tmpfs", MS_NOSUID | MS_NODEV, kRootOptions));
  std::string site = kSite;
  for (const char* name :
       {kHost, kNew, kScratch, kStage, kEmptyDirectory, kUnreadableDirectory, kLower}) {
    TRY(MakeDirectory(site + name, 0755));
  }
  TRY(sys::WriteFile(site + kEmptyFile, "", 0));
  if (::chmod((site + kUnreadableDirectory).c_str(), 0) != 0) return Errno("chmod");
  if (::syscall(SYS_pivot_root, kSite, (site + kHost).c_str()) != 0)
    return NamespaceErrno("pivot_root");
  if (::chdir("/") != 0) return Errno("chdir");

  TRY(MountScratch());
  TRY(Mount("tmpfs", kNew, "tmpfs", MS_NOSUID | MS_NODEV, kRootOptions));
  root_ = TRY(sys::Open(kNew, O_PATH | O_DIRECTORY));
  return Ok();
}

Status Builder::MountScratch() {
  if (disk_.path.empty()) {
    return Mount("tmpfs", kScratch, "tmpfs", MS_NOSUID | MS_NODEV,
                 "mode=755,size=" + std::to_string(plan_.limits.disk_bytes) +
                     ",nr_inodes=" + std::to_string(InodesOf(plan_.limits.disk_bytes)));
  }
  if (!disk_.tree.valid()) disk_.tree = TRY(CloneTree(AT_FDCWD, kHost + disk_.path));
  TRY(SetAttributes(disk_.tree.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, true));
  Fd place = TRY(sys::Open(kScratch, O_PATH | O_DIRECTORY));
  return MoveMount(disk_.tree.get(), "", place.get()).Context(disk_.path);
}

// On a disk nothing need be synchronised: the layers end with the run.
std::string Builder::OverlayOptions(const std::string& lower, const std::string& name) const {
  return "lowerdir=" + lower + ",upperdir=" + Upper(name) + ",workdir=" + kScratch + "/" + name +
         "/work,userxattr" + (disk_.path.empty() ? "" : ",volatile");
}

Result<Fd> Builder::Find(const std::string& target, int flags) const {
  return sys::OpenInRoot(root_.get(), target, flags);
}

// A directory, and those above it. One that is there stays as it is.
Status Builder::MakeInside(const std::string& target, mode_t mode) {
  if (target == "/" || Find(target, O_PATH | O_DIRECTORY).ok()) return Ok();
  auto [parent, leaf] = SplitLeaf(target);
  TRY(MakeInside(parent, 0755));
  Fd above = TRY(Find(parent, O_PATH | O_DIRECTORY));
  if (::mkdirat(above.get(), leaf.c_str(), mode) != 0) return Errno("mkdir " + target);
  Fd made = TRY(Find(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::fchmod(made.get(), mode) != 0) return Errno("chmod " + target);
  return Ok();
}

// Puts our own file in place of whatever file or link is there.
Status Builder::WriteInside(const std::string& target, const std::string& content, mode_t mode) {
  auto [parent, leaf] = SplitLeaf(target);
  TRY(MakeInside(parent, 0755));
  Fd above = TRY(Find(parent, O_PATH | O_DIRECTORY));
  if (::unlinkat(above.get(), leaf.c_str(), 0) != 0 && errno != ENOENT) {
    return Errno("replacing " + target);
  }
  Fd file = TRY(sys::OpenAt(above.get(), leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  TRY(sys::WriteAll(file.get(), content));
  if (::fchmod(file.get(), mode) != 0) return Errno("chmod " + target);
  return Ok();
}

Status Builder::LinkInside(const std::string& target, const std::string& text) {
  auto [parent, leaf] = SplitLeaf(target);
  Fd above = TRY(Find(parent, O_PATH | O_DIRECTORY));
  if (::symlinkat(text.c_str(), above.get(), leaf.c_str()) != 0 && errno != EEXIST) {
    return Errno("symlink " + target);
  }
  return Ok();
}

Status Builder::Attach(const Fd& tree, const std::string& target) const {
  Fd place = TRY(Find(target));
  return MoveMount(tree.get(), "", place.get()).Context(target);
}

// `source` is a path of the build site.
Status Builder::Bind(const std::string& source, const std::string& target,
                     uint64_t attributes) const {
  Fd tree = TRY(CloneTree(AT_FDCWD, source));
  TRY(SetAttributes(tree.get(), attributes, true).Context(target));
  return Attach(tree, target);
}

// A file system of the sandbox's own. It is mounted where names are ours, and moved.
Status Builder::MountNew(const char* type, unsigned long flags, const std::string& options,
                         const std::string& target) const {
  TRY(Mount(type, kStage, type, flags, options));
  Fd mounted = TRY(sys::Open(kStage, O_PATH | O_DIRECTORY));
  return Attach(mounted, target);
}

// The host's directory or file, with all that is mounted in it.
Result<Fd> Builder::OpenSource(const MountStep& step) {
  if (step.from == MountStep::Source::kPath) return CloneTree(AT_FDCWD, kHost + step.source);
  ENSURE(next_opened_ < opened_.size());
  return std::move(opened_[next_opened_++]);
}

Status Builder::PutLower(const MountStep& step) {
  Fd tree = TRY(OpenSource(step));
  TRY(MakeDirectory(Lower(step.scratch), 0755));
  Fd place = TRY(sys::Open(Lower(step.scratch), O_PATH | O_DIRECTORY));
  TRY(MoveMount(tree.get(), "", place.get()).Context(step.source));
  return PrepareLayers(step.scratch, Lower(step.scratch));
}

// Named by its number, so that hundreds of names fit into the one page of a mount's options.
Status Builder::CarryLayer(const MountStep& step) {
  Fd tree = TRY(OpenSource(step));
  TRY(SetAttributes(tree.get(), kSealed, true).Context(step.source));
  std::string name = Lower(std::to_string(layers_++));
  TRY(MakeDirectory(name, 0755));
  Fd place = TRY(sys::Open(name, O_PATH | O_DIRECTORY));
  return MoveMount(tree.get(), "", place.get()).Context(step.source);
}

// All layers are there: the image takes the place of the tree begun by EnterSite().
Status Builder::CarryImage() {
  ENSURE(layers_ > 0);
  TRY(PrepareLayers("image", Lower("0")));
  std::string lower = "0";
  for (int i = 1; i < layers_; ++i) lower += ":" + std::to_string(i);
  if (::chdir(kLower) != 0) return Errno("chdir");
  TRY(Mount("overlay", kNew, "overlay", MS_NOSUID | MS_NODEV, OverlayOptions(lower, "image")));
  if (::chdir("/") != 0) return Errno("chdir");
  root_ = TRY(sys::Open(kNew, O_PATH | O_DIRECTORY));
  return Ok();
}

// The very inode of the host: only a regular file has nothing at its other end.
Status Builder::CarryBind(const MountStep& step) {
  Fd tree = TRY(OpenSource(step));
  struct stat facts {};
  if (::fstat(tree.get(), &facts) != 0) return Errno(step.source);
  if (!S_ISREG(facts.st_mode)) return Error{Code::kIo, step.source + " is no longer a file"};
  TRY(SetAttributes(tree.get(), kSealed, true).Context(step.target));
  return Attach(tree, step.target);
}

// An overlay has inodes of its own: the sockets and pipes in it are not connected to the host's. It
// takes no fewer than two layers when it is never written to.
Status Builder::CarryShown(const MountStep& step) {
  Fd tree = TRY(OpenSource(step));
  std::string lower = Lower("shown-" + std::to_string(shown_++));
  TRY(MakeDirectory(lower, 0755));
  Fd place = TRY(sys::Open(lower, O_PATH | O_DIRECTORY));
  TRY(MoveMount(tree.get(), "", place.get()).Context(step.source));
  Status mounted =
      MountNew("overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
               "lowerdir=" + lower + ":" + kEmptyDirectory + ",userxattr", step.target);
  if (mounted.ok()) return Ok();
  // A file system that overlayfs does not take: FAT, an automount, two overlays already.
  Error error = std::move(mounted).error();
  error.code = Code::kUnsupported;
  error.what = step.source + " cannot be exposed without its sockets: " + error.what;
  error.hint = "leave " + step.source + " out of filesystem_policy.read_only and PATH";
  return error;
}

Status Builder::CarryDevice(const MountStep& step) {
  TRY(WriteInside(step.target, "", 0666));
  return Bind(kHost + step.source, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

Status Builder::CarryWorkspace(const MountStep& step) {
  TRY(PutLower(step));
  for (const WorkspaceFile& file : plan_.workspace_files) {
    if (!file.gone) TRY(WriteBeneath(Upper(step.scratch), file.path, file.content, 0644));
  }
  TRY(MountNew("overlay", MS_NOSUID | MS_NODEV, OverlayOptions(Lower(step.scratch), step.scratch),
               step.target));
  Fd workspace = TRY(Find(step.target, O_RDONLY | O_DIRECTORY));
  for (const WorkspaceFile& file : plan_.workspace_files) {
    if (file.gone) TRY(RemoveBeneath(workspace.get(), file.path));
  }
  return Ok();
}

Status Builder::CarryOverlay(const MountStep& step) {
  TRY(PutLower(step));
  return MountNew("overlay", MS_NOSUID | MS_NODEV,
                  OverlayOptions(Lower(step.scratch), step.scratch), step.target);
}

Status Builder::CarryOverFile(const MountStep& step) {
  std::string place = kOverFiles + std::to_string(over_files_++);
  TRY(sys::WriteFile(place, step.content.get(), 0644));
  return Bind(place, step.target, kSealed);
}

Status Builder::CarryScratch(const MountStep& step) {
  std::string place = std::string(kScratch) + "/" + step.scratch;
  TRY(MakeDirectory(place, step.mode));
  return Bind(place, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

// Masks the step's target. A target that cannot be reached from here, with the agent's rights and
// more, needs no mask; nor does one that a place of the sandbox's own covers, such as a home in
// /var/tmp.
Status Builder::CarryMask(const MountStep& step) {
  Result<Fd> place = Find(step.target);
  if (!place.ok()) {
    int failure = place.error().os_error;
    if (failure == EACCES || failure == ENOENT) return Ok();
  }
  return Bind(step.is_directory ? kUnreadableDirectory : kEmptyFile, step.target, kSealed);
}

// A mount of its own, which stays writable when what is around it is sealed.
Status Builder::CarryWritable(const MountStep& step) {
  Fd place = TRY(Find(step.target));
  Fd tree = TRY(CloneTree(place.get(), ""));
  return MoveMount(tree.get(), "", place.get()).Context(step.target);
}

Status Builder::CarrySeal(const MountStep& step) {
  if (step.target == "/") return SetAttributes(root_.get(), MOUNT_ATTR_RDONLY, false);
  Fd place = TRY(Find(step.target));
  return SetAttributes(place.get(), MOUNT_ATTR_RDONLY, false).Context(step.target);
}

Status Builder::Carry(const MountStep& step) {
  switch (step.kind) {
    case Kind::kLayer:
      return CarryLayer(step);
    case Kind::kImage:
      return CarryImage();
    case Kind::kDirectory:
      return MakeInside(step.target, step.mode);
    case Kind::kFile:
      return WriteInside(step.target, step.content, step.mode);
    case Kind::kUpperFile:
      return WriteBeneath(Upper(step.scratch), step.target.substr(step.source.size() + 1),
                          step.content, step.mode);
    case Kind::kSymlink:
      return LinkInside(step.target, step.source);
    case Kind::kBind:
      return CarryBind(step);
    case Kind::kShown:
      return CarryShown(step);
    case Kind::kDevice:
      return CarryDevice(step);
    case Kind::kOverlay:
      return CarryOverlay(step);
    case Kind::kOverFile:
      return CarryOverFile(step);
    case Kind::kWorkspace:
      return CarryWorkspace(step);
    case Kind::kScratch:
      return CarryScratch(step);
    case Kind::kProc:
      return MountNew("proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", step.target);
    case Kind::kDevPts:
      return MountNew("devpts", MS_NOSUID | MS_NOEXEC, kTerminalOptions, step.target);
    case Kind::kEmpty:
      return Bind(kEmptyDirectory, step.target, kSealed);
    case Kind::kMask:
      return CarryMask(step);
    case Kind::kWritable:
      return CarryWritable(step);
    case Kind::kReadOnly:
      return CarrySeal(step);
  }
  return Error{Code::kBug, "unknown mount step"};
}

// The tree becomes the root; the build site and, with it, the host are unmounted.
Status Builder::Leave() {
  if (::chdir(kNew) != 0) return Errno("chdir");
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return NamespaceErrno("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return Errno("umount2");
  if (::chdir("/") != 0) return Errno("chdir");
  return Ok();
}

Result<TreeLayers> Builder::Build() {
  TRY(EnterSite());
  for (const MountStep& step : plan_.namespaces().mounts) TRY(Carry(step));
  TreeLayers layers;
  layers.workspace = TRY(sys::Open(Upper("workspace"), O_RDONLY | O_DIRECTORY));
  layers.all = TRY(sys::Open(kScratch, O_RDONLY | O_DIRECTORY));
  TRY(Leave());
  return layers;
}

}  // namespace

Result<TreeLayers> BuildTree(const SandboxPlan& plan, DiskLayers disk, std::vector<Fd> opened) {
  return Builder(plan, std::move(disk), std::move(opened)).Build();
}

}  // namespace sandbox
