// SPDX-License-Identifier: Apache-2.0
#include "eval/child/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "base/tree.h"

namespace eval {

Result<Scratch> Scratch::Create() {
  std::string path = sys::Environment("TMPDIR").value_or("/tmp") + "/agentic-ci-eval-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return Errno("mkdtemp");
  Scratch scratch(path);
  // The agent may have a user of its own: what keeps it out must not be a mode.
  if (::chmod(path.c_str(), 0755) != 0) return Errno("chmod");
  return scratch;
}

Scratch::~Scratch() {
  if (path_.empty()) return;
  size_t slash = path_.rfind('/');
  Result<Fd> parent = sys::Open(path_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
  if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), path_.substr(slash + 1)).ok();
}

}  // namespace eval
