// SPDX-License-Identifier: Apache-2.0
#include "sandbox/image_root.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/sys.h"
#include "base/user_namespace.h"
#include "sandbox/plan.h"

namespace sandbox {
namespace {

// Private to the child: a place whose names are ours, since the mount's options could not hold a
// colon or a comma of the host's.
constexpr char kLayerSite[] = "/tmp";
constexpr size_t kMessageBytesMax = 512;

Status Mount(const char* source, const std::string& target, const char* type, unsigned long flags,
             const std::string& options) {
  if (::mount(source, target.c_str(), type, flags, options.c_str()) != 0) {
    return Errno("mount " + target);
  }
  return Ok();
}

// Mounts the layers, in the child. They are opened before kLayerSite, which may hold them, is
// mounted over.
Result<Fd> MountLayers(const std::vector<std::string>& layers) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Errno("making mounts private");
  }
  std::vector<Fd> trees;
  for (const std::string& layer : layers) {
    trees.emplace_back(
        static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, layer.c_str(),
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
    if (!trees.back().valid()) return Errno("open_tree " + layer);
  }
  TRY(Mount("tmpfs", kLayerSite, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=700"));
  std::string lower;
  for (size_t i = 0; i <= trees.size(); ++i) {
    std::string name = std::to_string(i);
    std::string path = std::string(kLayerSite) + "/" + name;
    if (::mkdir(path.c_str(), 0755) != 0) return Errno("mkdir " + path);
    lower += (i == 0 ? "" : ":") + name;
    if (i == trees.size()) break;  // The lowest is empty: one layer alone makes no overlay.
    if (::syscall(SYS_move_mount, trees[i].get(), "", AT_FDCWD, path.c_str(),
                  MOVE_MOUNT_F_EMPTY_PATH) != 0) {
      return Errno("move_mount " + layers[i]);
    }
  }
  if (::chdir(kLayerSite) != 0) return Errno("chdir");
  if (::mkdir("root", 0755) != 0) return Errno("mkdir");
  TRY(Mount("overlay", "root", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
            "lowerdir=" + lower + ",userxattr"));
  Fd root(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!root.valid()) return Errno("open_tree");
  return root;
}

[[noreturn]] void RunChild(const std::vector<std::string>& layers, int socket) {
  Result<sys::Message> mapped = sys::ReceiveMessage(socket, kMessageBytesMax, Deadline::Never());
  if (!mapped.ok() || mapped.value().bytes.empty()) ::_exit(1);
  Result<Fd> root = MountLayers(layers);
  if (root.ok()) {
    (void)sys::SendMessage(socket, "root", root.value().get());
  } else {
    (void)sys::SendMessage(socket, root.error().what.substr(0, kMessageBytesMax));
  }
  ::_exit(0);
}

Result<Fd> AwaitRoot(pid_t pid, int socket) {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  if (uid != 0) TRY(sys::MapIds(pid, {uid, uid}, {gid, gid}, false));
  TRY(sys::SendMessage(socket, "mapped"));
  sys::Message answer = TRY(sys::ReceiveMessage(socket, kMessageBytesMax, Deadline::Never()));
  if (answer.fd.valid()) return std::move(answer.fd);
  return Error{Code::kUnsupported, "stacking the image's layers: " + answer.bytes,
               sys::NamespaceRemedy()};
}

}  // namespace

Result<ImageRoot> ImageRoot::Open(const std::vector<std::string>& layers) {
  auto [ours, theirs] = TRY(sys::SocketPair());
  // Root needs no rights but its own; anybody else has them in a namespace alone.
  unsigned long flags = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER) | SIGCHLD;
  long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return sys::NamespaceRefused("clone(CLONE_NEWNS)", errno);
  if (pid == 0) {
    ours.Close();
    RunChild(layers, theirs.get());
  }
  theirs.Close();
  Result<Fd> root = AwaitRoot(static_cast<pid_t>(pid), ours.get());
  ours.Close();  // A child that still waits sees it and ends.
  while (::waitpid(static_cast<pid_t>(pid), nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!root.ok()) return std::move(root).error();
  return ImageRoot(std::move(root).value());
}

Status ImageRoot::CheckPlaces() const {
  struct stat facts {};
  auto stands = [&](const char* path) {
    return ::fstatat(root_.get(), path + 1, &facts, AT_SYMLINK_NOFOLLOW) == 0;
  };
  auto refuse = [](const std::string& path, const char* why) {
    return Error{Code::kInvalid, "the image's " + path + why};
  };
  for (const char* path : {"/proc", "/dev", "/etc"}) {
    if (stands(path) && !S_ISDIR(facts.st_mode)) return refuse(path, " is not a directory");
  }
  for (const char* path : {"/tmp", "/run", "/var", kHome}) {
    if (stands(path) && Kind(path) != PathKind::kDirectory) {
      return refuse(path, " is not a directory");
    }
  }
  // /etc is not a link by now. Links in place of the files are replaced.
  for (const char* path :
       {"/etc/passwd", "/etc/group", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}) {
    if (stands(path) && S_ISDIR(facts.st_mode)) return refuse(path, " is a directory");
  }
  return Ok();
}

PathKind ImageRoot::Kind(const std::string& path) const {
  Result<Fd> found = sys::OpenInRoot(root_.get(), path, O_PATH);
  struct stat facts {};
  if (!found.ok() || ::fstat(found.value().get(), &facts) != 0) return PathKind::kMissing;
  if (S_ISREG(facts.st_mode)) return PathKind::kFile;
  return S_ISDIR(facts.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

bool ImageRoot::IsProgram(const std::string& path) const {
  Result<Fd> found = sys::OpenInRoot(root_.get(), path, O_PATH);
  struct stat facts {};
  return found.ok() && ::fstat(found.value().get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         (facts.st_mode & 0111) != 0;
}

Result<std::string> ImageRoot::Read(const std::string& path, size_t bytes_max) const {
  // Without waiting: a pipe has no writer here.
  Fd file = TRY(sys::OpenInRoot(root_.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return Errno("fstat " + path);
  if (!S_ISREG(facts.st_mode)) {
    return Error{Code::kInvalid, path + " of the image is not a regular file"};
  }
  return sys::ReadAll(file.get(), bytes_max).Context(path + " of the image");
}

Result<std::string> ImageRoot::RealPath(const std::string& path) const {
  Fd found = TRY(sys::OpenInRoot(root_.get(), path, O_PATH));
  std::optional<std::string> real = sys::ReadLink("/proc/self/fd/" + std::to_string(found.get()));
  if (!real || !real->starts_with('/')) {
    return Error{Code::kIo, "the path of " + path + " in the image is unknown"};
  }
  return *real;
}

}  // namespace sandbox
