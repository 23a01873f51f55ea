// SPDX-License-Identifier: Apache-2.0
// Shows parts of the host's file tree in a plan, read-only. A directory is shown through an overlay
// without an upper layer: what the agent meets there are the overlay's inodes, so that a socket, a
// pipe or a file lock of the host has no other end (docs/threat-model.md).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sandbox/plan.h"

namespace sandbox {

class HostTree {
 public:
  // The source of what is shown, and its owner on the host.
  struct Origin {
    MountStep::Source from = MountStep::Source::kPath;
    uid_t owner = 0;  // kMapped.
  };

  // Borrows all. Steps are appended to `plan`. `secrets` are paths that will be masked.
  HostTree(const HostView& host, const std::vector<std::string>& secrets, SandboxPlan* plan)
      : host_(host), secrets_(secrets), plan_(*plan) {}

  // Makes a directory of the sandbox's own, unless there is one already.
  void MakeDirectory(const std::string& path);
  // Makes every directory above `path` that nothing has made yet.
  void MakeParents(const std::string& path);
  // Makes `path` the sandbox's own from now on: the host's is not shown in its place.
  void Keep(const std::string& path) { made_.insert(path); }

  // Shows a file, directory or link of the host at its own path. Does not show anything else.
  void Show(const std::string& path, Origin origin);
  // Notes that something of the host is at `path` already, however it came there.
  void NoteShown(const std::string& path) { shown_.push_back(path); }
  const std::vector<std::string>& shown() const { return shown_; }
  bool IsShown(const std::string& path) const;

  // Appends a step to the plan.
  void Add(MountStep step) { plan_.namespaces().mounts.push_back(std::move(step)); }

  // Returns the first mount point strictly beneath `path`, or "".
  std::string MountBeneath(const std::string& path) const;

 private:
  void ShowDirectory(const std::string& path, Origin origin);
  void ShowEntry(const std::string& path, Origin origin);
  void CoverOwnPlaces(const std::string& path);

  const HostView& host_;
  const std::vector<std::string>& secrets_;
  SandboxPlan& plan_;
  // The paths that exist in the new root, apart from those that are shown.
  std::set<std::string> made_;
  std::vector<std::string> shown_;  // Host paths that are mounted.
};

// Returns the writable layer of SandboxRequest::repository_layers[index], in the run's scratch.
std::string RepositoryScratch(size_t index);

// Plans the directories outside the checkout that hold its repository, as in a linked worktree. Git
// writes to layers over them; where there can be no layer, they are read-only and a note says so.
Status PlanRepository(const SandboxRequest& request, const HostView& host, HostTree* tree,
                      SandboxPlan* plan);

}  // namespace sandbox
