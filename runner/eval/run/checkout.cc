// SPDX-License-Identifier: Apache-2.0
#include "eval/run/checkout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/sys.h"
#include "base/tree.h"
#include "eval/run/git_history.h"

namespace eval {
namespace {

constexpr char kPrefix[] = "workspace-";
constexpr char kMark[] = ".agentic-ci-checkout";

std::string Place() { return sys::Environment("TMPDIR").value_or("/tmp"); }

// A link of the suite's own on the way to a file is an error: it could lead out of the checkout.
Status Plant(int top, const SeedFile& file) {
  Fd parent = TRY(sys::OpenAt(top, ".", O_RDONLY | O_DIRECTORY));
  std::string_view rest = file.path;
  for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
    if (name.empty() || name == ".") continue;
    if (::mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return Errno("mkdir");
    parent = TRY(sys::OpenBeneath(parent.get(), name, O_RDONLY | O_DIRECTORY));
  }
  const std::string name(rest);
  if (file.link) {
    return ::symlinkat(file.content.c_str(), parent.get(), name.c_str()) == 0 ? Ok()
                                                                              : Errno("symlink");
  }
  Fd written = TRY(sys::OpenBeneath(parent.get(), name, O_WRONLY | O_CREAT | O_TRUNC,
                                    file.executable ? 0755 : 0644));
  return sys::WriteAll(written.get(), file.content);
}

}  // namespace

Result<Checkout> Checkout::Create(const std::vector<SeedFile>& files,
                                  const std::vector<SeedCommit>& commits) {
  std::string holder = Place() + "/" + kPrefix + "XXXXXX";
  if (::mkdtemp(holder.data()) == nullptr) return Errno("mkdtemp");
  Fd lock = TRY(sys::Open(holder, O_RDONLY | O_DIRECTORY));
  Checkout checkout(holder, std::move(lock));
  // The mark comes after the lock: what has it and no lock is left over.
  if (::flock(checkout.lock_.get(), LOCK_EX) != 0) return Errno("flock");
  TRY(sys::WriteFile(holder + "/" + kMark, ""));
  TRY(sys::MakeDirectories(checkout.path(), 0700));
  Fd top = TRY(sys::Open(checkout.path(), O_RDONLY | O_DIRECTORY));
  for (const SeedFile& file : files) TRY(Plant(top.get(), file).Context("making " + file.path));
  if (!commits.empty()) {
    TRY(MakeHistory(checkout.path(), files, commits).Context("making the history"));
  }
  return checkout;
}

Checkout::~Checkout() {
  if (!lock_.valid()) return;
  size_t slash = holder_.rfind('/');
  Result<Fd> parent = sys::Open(holder_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
  if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), holder_.substr(slash + 1)).ok();
}

void RemoveLeftCheckouts() {
  Result<Fd> place = sys::Open(Place(), O_RDONLY | O_DIRECTORY);
  if (!place.ok()) return;
  Result<std::vector<std::string>> names = sys::DirectoryNames(place.value().get());
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (!name.starts_with(kPrefix)) continue;
    Result<Fd> holder = sys::OpenAt(place.value().get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat st {};
    if (!holder.ok() || ::fstat(holder.value().get(), &st) != 0 || st.st_uid != ::geteuid()) {
      continue;
    }
    if (!sys::ExistsAt(holder.value().get(), kMark)) continue;  // Another program's.
    if (::flock(holder.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)sys::RemoveTree(place.value().get(), name).ok();
  }
}

}  // namespace eval
