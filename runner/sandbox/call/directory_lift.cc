// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/directory_lift.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

constexpr int kDepthMax = 128;  // Two descriptors for each level.
// The number of rounds in which what others make in the directory meanwhile is moved too.
constexpr int kRoundsMax = 16;
constexpr char kInside[] = "x";

Result<Fd> OpenDirectory(int parent, const std::string& name) {
  return sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Status Rename(int from, const std::string& name, int to, const std::string& new_name) {
  if (::renameat(from, name.c_str(), to, new_name.c_str()) != 0) return Errno("rename " + name);
  return Ok();
}

Status RemoveDirectory(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return Errno("rmdir " + name);
  return Ok();
}

Status MoveEntries(int from, int to, int depth);

// The directory `name` of `from` becomes one of `to`, in the upper layer only.
Status MoveDirectory(int from, const std::string& name, int to, const std::string& new_name,
                     int depth) {
  if (depth > kDepthMax) return Error{Code::kUnsupported, "the tree is too deep"};
  Fd old = TRY(OpenDirectory(from, name));
  struct stat st {};
  if (::fstat(old.get(), &st) != 0) return Errno("fstat " + name);
  Fd made = TRY(OpenDirectory(to, new_name));
  // A directory can be renamed although its owner may not change what is in it.
  bool opens = (st.st_mode & S_IRWXU) != S_IRWXU;
  if (opens && ::fchmod(old.get(), st.st_mode | S_IRWXU) != 0) return Errno("chmod " + name);
  auto move = [&]() -> Status {
    for (int round = 0;; ++round) {
      TRY(MoveEntries(old.get(), made.get(), depth));
      if (::fchmod(made.get(), st.st_mode & 07777) != 0) return Errno("chmod " + new_name);
      timespec times[2] = {st.st_atim, st.st_mtim};
      if (::futimens(made.get(), times) != 0) return Errno("utimensat " + new_name);
      // Over an empty directory this is one step.
      Status done = from == to ? Rename(to, new_name, from, name) : RemoveDirectory(from, name);
      bool grew =
          !done.ok() && (done.error().os_error == ENOTEMPTY || done.error().os_error == EEXIST);
      if (!grew || round == kRoundsMax) return done;
    }
  };
  Status moved = move();
  if (moved.ok()) return Ok();
  (void)::fchmod(made.get(), S_IRWXU);
  Result<std::vector<std::string>> names = sys::DirectoryNames(made.get());
  for (const std::string& inside : names.ok() ? names.value() : std::vector<std::string>{}) {
    (void)Rename(made.get(), inside, old.get(), inside);
  }
  if (opens) (void)::fchmod(old.get(), st.st_mode & 07777);
  return moved;
}

Status MoveEntries(int from, int to, int depth) {
  std::vector<std::string> names = TRY(sys::DirectoryNames(from));
  for (const std::string& name : names) {
    Status renamed = Rename(from, name, to, name);
    if (renamed.ok() || renamed.error().os_error == ENOENT) continue;
    if (renamed.error().os_error != EXDEV) return renamed;
    if (::mkdirat(to, name.c_str(), S_IRWXU) != 0) return Errno("mkdir " + name);
    Status moved = MoveDirectory(from, name, to, name, depth + 1);
    if (moved.ok()) continue;
    (void)RemoveDirectory(to, name);
    return moved;
  }
  return Ok();
}

// Returns whether the kernel would not rename the directory. It looks at that before it finds that
// the target, which is not empty, cannot be replaced.
bool NeedsLift(int parent, const std::string& name, const std::string& target) {
  Result<Fd> made = OpenDirectory(parent, target);
  if (!made.ok() || ::mkdirat(made.value().get(), kInside, S_IRWXU) != 0) return false;
  Status renamed = Rename(parent, name, parent, target);
  (void)RemoveDirectory(made.value().get(), kInside);
  return !renamed.ok() && renamed.error().os_error == EXDEV;
}

}  // namespace

Status LiftDirectory(int base, const std::string& path) {
  std::string clean = path;
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  size_t slash = clean.rfind('/');
  std::string name = slash == std::string::npos ? clean : clean.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return Ok();  // The kernel renames none of them.
  std::string above = slash == std::string::npos ? "." : clean.substr(0, slash + 1);
  Fd parent = TRY(sys::OpenAt(base, above, O_PATH | O_DIRECTORY));
  struct stat st {};
  if (::fstatat(parent.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(st.st_mode)) {
    return Ok();
  }
  std::string next = ".agentic-ci-moves-" + std::to_string(::getpid());
  if (::mkdirat(parent.get(), next.c_str(), S_IRWXU) != 0) return Errno("mkdir " + next);
  Status lifted = Ok();
  if (NeedsLift(parent.get(), name, next)) {
    lifted = MoveDirectory(parent.get(), name, parent.get(), next, 0);
  }
  (void)RemoveDirectory(parent.get(), next);  // Not there, if it took the other's place.
  return lifted;
}

}  // namespace sandbox
