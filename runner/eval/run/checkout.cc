// SPDX-License-Identifier: Apache-2.0
#include "eval/run/checkout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/tree.h"
#include "eval/run/git_history.h"

namespace eval {

Result<Checkout> Checkout::Create(const std::vector<SeedFile>& files,
                                  const std::vector<SeedCommit>& commits) {
  std::string path = sys::Environment("TMPDIR").value_or("/tmp") + "/workspace-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return Errno("mkdtemp");
  Checkout checkout(path);
  for (const SeedFile& file : files) {
    std::string full = path + "/" + file.path;
    TRY(sys::MakeDirectories(full.substr(0, full.rfind('/'))).Context("making " + file.path));
    if (file.link) {
      if (::symlink(file.content.c_str(), full.c_str()) != 0) return Errno("symlink");
      continue;
    }
    TRY(sys::WriteFile(full, file.content, file.executable ? 0755 : 0644)
            .Context("writing " + file.path));
  }
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
