// SPDX-License-Identifier: Apache-2.0
#include "eval/run/checkout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/sys.h"
#include "base/tree.h"
#include "eval/run/git_history.h"

namespace eval {
namespace {

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
  std::string path = sys::Environment("TMPDIR").value_or("/tmp") + "/workspace-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return Errno("mkdtemp");
  Checkout checkout(path);
  Fd top = TRY(sys::Open(path, O_RDONLY | O_DIRECTORY));
  for (const SeedFile& file : files) TRY(Plant(top.get(), file).Context("making " + file.path));
  if (!commits.empty()) TRY(MakeHistory(path, files, commits).Context("making the history"));
  return checkout;
}

Checkout::~Checkout() {
  if (path_.empty()) return;
  size_t slash = path_.rfind('/');
  Result<Fd> parent = sys::Open(path_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
  if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), path_.substr(slash + 1)).ok();
}

}  // namespace eval
