// SPDX-License-Identifier: Apache-2.0
// Facts about the host that planning a sandbox needs, as a value, so that tests can plan for hosts
// that do not exist.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandbox {

enum class PathKind { kMissing, kFile, kDirectory, kSymlink, kOther };

// The facts about the host that planning needs. A value with functions, so that tests plan for
// hosts that do not exist.
struct HostView {
  uid_t uid = 0;  // Effective ids of the runner.
  gid_t gid = 0;
  // The runner is root to the whole machine or container, not only in a user namespace of its own.
  bool root = false;
  // An id that the runner, where it is root, may give the agent: one that no account has, nor
  // another run on this machine. Drawn at random, as far from real accounts and from subordinate
  // ids as this user namespace has any.
  std::optional<uid_t> free_id = std::nullopt;
  uid_t checkout_uid = 0;  // Owner of the checkout.
  gid_t checkout_gid = 0;
  // Returns the kind of what stands at an absolute path, the last component not followed.
  std::function<PathKind(const std::string&)> kind;
  // The text of a symbolic link, and the names in a directory; empty if there is none.
  std::function<std::string(const std::string&)> link;
  std::function<std::vector<std::string>(const std::string&)> list;
  // The path without links; empty if nothing stands there.
  std::function<std::string(const std::string&)> real;
  // The first bytes of a regular file, as many as the kernel looks at to find an interpreter.
  std::function<std::string(const std::string&)> head;
  // Return the owner of what stands there, and its permission bits; the last component is not
  // followed.
  std::function<uid_t(const std::string&)> owner;
  std::function<mode_t(const std::string&)> mode;
  // Every mount point, as this process sees it.
  std::vector<std::string> mounts = {};
  std::string home = {};  // The runner's own, without links; empty if it has none.
  std::string name = {};  // The machine's, as gethostname(2) tells it.
  std::string user = {};  // The account of `uid`; empty if /etc/passwd has none.
  // A memory file system can hold an overlay's upper layer (Linux 6.6).
  bool layers_in_memory = true;
  // Other places where this run may write, the best first: absolute paths that need not exist.
  std::vector<std::string> scratch_places = {};
};

// Returns whether HostView::free_id may be this.
bool IsFreeId(uid_t id);

// Returns a view of the host that this process runs on.
HostView ReadHost(const std::string& checkout);

}  // namespace sandbox
