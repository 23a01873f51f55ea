// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host_tree.h"

#include "sandbox/mask.h"
#include "sandbox/workdir.h"

namespace sandbox {
namespace {

using Kind = MountStep::Kind;
using Source = MountStep::Source;

// A directory with mounts in it is shown entry by entry, each a mount; the kernel gives a namespace
// 100,000 (fs.mount-max).
constexpr size_t kEntriesMax = 20'000;

// Git wants a repository to belong to its user.
HostTree::Origin OriginOf(const std::string& path, const HostView& host, const SandboxPlan& plan) {
  if (!plan.as_root) return {};
  uid_t owner = host.owner(path);
  return {owner != plan.host_uid ? Source::kMapped : Source::kOpened, owner};
}

// `scratch` is the layer's name. The replaced files are in it before it is mounted, so that git can
// rename its own over them.
void PlanLayer(const SandboxRequest& request, const HostView& host, const std::string& path,
               const std::string& scratch, HostTree* tree, SandboxPlan* plan) {
  for (const WorkspaceFile& file : request.repository_files) {
    if (!Beneath(file.path, path)) continue;
    tree->Add({.kind = Kind::kUpperFile,
               .target = file.path,
               .source = path,
               .scratch = scratch,
               .content = file.content,
               .mode = 0644});
  }
  tree->MakeParents(path);
  tree->MakeDirectory(path);
  HostTree::Origin origin = OriginOf(path, host, *plan);
  tree->Add({.kind = Kind::kOverlay,
             .target = path,
             .source = path,
             .scratch = scratch,
             .from = origin.from,
             .owner = origin.owner,
             .or_unmapped = true});
  tree->NoteShown(path);
  plan->landlock.push_back({path, true});
}

}  // namespace

void HostTree::MakeDirectory(const std::string& path) {
  if (made_.insert(path).second) Add({Kind::kDirectory, path});
}

void HostTree::MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    if (!IsShown(parent)) MakeDirectory(parent);
  }
}

bool HostTree::IsShown(const std::string& path) const { return IsBeneathAny(path, shown_); }

std::string HostTree::MountBeneath(const std::string& path) const {
  for (const std::string& point : host_.mounts) {
    if (point != path && Beneath(point, path)) return point;
  }
  return {};
}

void HostTree::Show(const std::string& path, Origin origin) {
  MakeParents(path);
  ShowEntry(path, origin);
  if (host_.kind(path) == PathKind::kSymlink) return;
  CoverOwnPlaces(path);
  shown_.push_back(path);
}

void HostTree::ShowEntry(const std::string& path, Origin origin) {
  switch (host_.kind(path)) {
    case PathKind::kSymlink:
      if (!made_.insert(path).second) return;
      return Add({.kind = Kind::kSymlink, .target = path, .source = host_.link(path)});
    case PathKind::kFile:
      Add({.kind = Kind::kFile, .target = path, .mode = 0644});
      return Add({.kind = Kind::kBind,
                  .target = path,
                  .source = path,
                  .is_directory = false,
                  .from = origin.from,
                  .owner = origin.owner});
    case PathKind::kDirectory:
      return ShowDirectory(path, origin);
    case PathKind::kMissing:
    case PathKind::kOther:
      return;
  }
}

// No layer of an overlay can have mounts in it that an ordinary user did not make.
void HostTree::ShowDirectory(const std::string& path, Origin origin) {
  MakeDirectory(path);
  // A directory that is hidden as a whole need not be taken apart: every container of Docker's has
  // a mount.
  if (IsBeneathAny(path, secrets_)) return;
  if (MountBeneath(path).empty()) {
    return Add({.kind = Kind::kShown,
                .target = path,
                .source = path,
                .from = origin.from,
                .owner = origin.owner});
  }
  std::vector<std::string> names = host_.list(path);
  if (names.size() > kEntriesMax) {
    plan_.notes.push_back(path + ": not exposed: it contains mounts and too many entries");
    return;
  }
  for (const std::string& name : names) {
    std::string entry = path == "/" ? "/" + name : path + "/" + name;
    if (!made_.contains(entry)) ShowEntry(entry, origin);
  }
}

// A directory that holds one of the sandbox's own places hides it: /var, for one.
void HostTree::CoverOwnPlaces(const std::string& path) {
  if (!Beneath("/var/tmp", path) || !MountBeneath(path).empty()) return;
  if (host_.kind("/var/tmp") == PathKind::kDirectory) {
    Add({.kind = Kind::kScratch, .target = "/var/tmp", .scratch = "var-tmp", .mode = 01777});
  }
  if (host_.kind("/var/run") == PathKind::kDirectory) {
    Add({.kind = Kind::kEmpty, .target = "/var/run"});
  }
}

std::string RepositoryScratch(size_t index) { return "repository-" + std::to_string(index); }

Status PlanRepository(const SandboxRequest& request, const HostView& host, HostTree* tree,
                      SandboxPlan* plan) {
  bool writable = TRY(DecideWorkdir(request.policy.filesystem, plan->landlock, request.checkout)) ==
                  WorkdirAccess::kWritable;
  std::vector<std::string> read_only = request.repository_directories;
  std::vector<std::string> layers;
  for (size_t i = 0; i < request.repository_layers.size(); ++i) {
    const std::string& path = request.repository_layers[i];
    // A layer can only be changed by its owner, and has no mounts in it.
    bool own = host.root || host.owner(path) == host.uid;
    if (writable && own && tree->MountBeneath(path).empty()) {
      PlanLayer(request, host, path, RepositoryScratch(i), tree, plan);
      layers.push_back(path);
      continue;
    }
    read_only.push_back(path);
    if (!writable) continue;
    plan->notes.push_back(path + ": read-only, so git writes nothing there: " +
                          (own ? "it contains mounts" : "it belongs to another user"));
  }
  for (const std::string& path : read_only) {
    tree->Show(path, OriginOf(path, host, *plan));
    plan->landlock.push_back({path, false});
  }
  for (const WorkspaceFile& file : request.repository_files) {
    if (IsBeneathAny(file.path, layers)) continue;
    tree->Add({.kind = Kind::kOverFile, .target = file.path, .content = file.content});
  }
  return Ok();
}

}  // namespace sandbox
