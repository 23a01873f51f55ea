// SPDX-License-Identifier: Apache-2.0
// The changes of the checkout's commits, for a task's choice and its prompt.
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/sys.h"
#include "change/repository_state.h"

namespace change {
namespace {

constexpr size_t kPathsMax = 100000;
constexpr int64_t kShownBytesMax = int64_t{1} << 20;
// The content that is looked at for one difference: the limits of a run do not hold yet.
constexpr size_t kLookedBytesMax = size_t{64} << 20;

Result<GitTree> CommitTree(git_repository* git, const git_oid& commit_id, std::string_view what) {
  git_commit* raw = nullptr;
  if (git_commit_lookup(&raw, git, &commit_id) != 0) {
    return GitError(Code::kNotFound, "reading the commit of " + std::string(what));
  }
  GitCommit commit(raw);
  git_tree* tree = nullptr;
  if (git_commit_tree(&tree, commit.get()) != 0) {
    return GitError(Code::kNotFound, "reading the tree of " + std::string(what));
  }
  return GitTree(tree);
}

// Returns the difference from `base`, or with `merged` from its merge base with HEAD, to HEAD.
Result<GitDiff> DiffToHead(git_repository* git, const std::string& base, bool merged) {
  GitCommit from = TRY(FindCommit(git, base));
  GitCommit head = TRY(FindCommit(git, "HEAD"));
  git_oid id = *git_commit_id(from.get());
  git_oid common;
  // A shallow clone knows no common ancestor.
  if (merged && git_merge_base(&common, git, &id, git_commit_id(head.get())) == 0) id = common;
  GitTree before = TRY(CommitTree(git, id, base));
  GitTree after = TRY(CommitTree(git, *git_commit_id(head.get()), "HEAD"));
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  // A proposal's own .gitattributes have no say in what of it is shown.
  options.flags = GIT_DIFF_FORCE_TEXT;
  git_diff* raw = nullptr;
  if (git_diff_tree_to_tree(&raw, git, before.get(), after.get(), &options) != 0) {
    return GitError(Code::kNotFound, "comparing HEAD with " + base);
  }
  GitDiff diff(raw);
  if (git_diff_num_deltas(diff.get()) > kPathsMax) {
    return Error{Code::kInvalid,
                 "more than " + std::to_string(kPathsMax) + " files differ from " + base};
  }
  return diff;
}

// Returns what the index and the working tree change since `tree`; null is a tree without files.
// Submodules are not looked into. Returns null for an index that libgit2 cannot read.
GitDiff DiffToDisk(git_repository* git, git_tree* tree) {
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  options.flags = GIT_DIFF_FORCE_TEXT;
  options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
  git_diff* raw = nullptr;
  if (git_diff_tree_to_workdir_with_index(&raw, git, tree, &options) != 0) return GitDiff();
  return GitDiff(raw);
}

// Returns the difference from `base`, as DiffToHead() with `merged`, to what is on the disk.
Result<GitDiff> DiffWithUncommitted(git_repository* git, const std::string& base) {
  if (git_repository_head_unborn(git) == 1) {
    GitDiff all = DiffToDisk(git, nullptr);
    if (all == nullptr) return GitError(Code::kInvalid, "reading the index");
    return all;
  }
  GitDiff diff = TRY(DiffToHead(git, base, true));
  GitCommit head = TRY(FindCommit(git, "HEAD"));
  GitTree tree = TRY(CommitTree(git, *git_commit_id(head.get()), "HEAD"));
  GitDiff later = DiffToDisk(git, tree.get());
  if (later != nullptr && git_diff_num_deltas(later.get()) > 0) {
    (void)git_diff_merge(diff.get(), later.get());  // Fails out of memory alone.
  }
  return diff;
}

// Finds the differences between two trees without looking into directories that are the same on
// both sides: libgit2's difference reads every tree of the repository.
class TreeComparison {
 public:
  explicit TreeComparison(git_repository* git) : git_(git) {}

  // Adds the files below `directory` ("" or "a/b/") that differ. Either tree may be null.
  Status Compare(const git_tree* before, const git_tree* after, const std::string& directory) {
    if (++depth_ > kDepthMax) return Error{Code::kInvalid, directory + " is nested too deeply"};
    std::map<std::string, Sides> entries;
    Read(before, &Sides::before, &entries);
    Read(after, &Sides::after, &entries);
    for (const auto& [name, sides] : entries) {
      if (Same(sides)) continue;
      std::string path = directory + name;
      if (IsFile(sides.before) || IsFile(sides.after)) paths_.push_back(path);
      GitTree old_tree = TRY(TreeOf(sides.before));
      GitTree new_tree = TRY(TreeOf(sides.after));
      if (old_tree || new_tree) TRY(Compare(old_tree.get(), new_tree.get(), path + "/"));
      if (paths_.size() > kPathsMax) {
        return Error{Code::kInvalid, "more than " + std::to_string(kPathsMax) + " files differ"};
      }
    }
    --depth_;
    return Ok();
  }

  // Sorted.
  std::vector<std::string> Take() {
    std::sort(paths_.begin(), paths_.end());
    return std::move(paths_);
  }

 private:
  static constexpr int kDepthMax = 256;
  struct Sides {
    const git_tree_entry* before = nullptr;
    const git_tree_entry* after = nullptr;
  };

  static void Read(const git_tree* tree, const git_tree_entry* Sides::*side,
                   std::map<std::string, Sides>* entries) {
    size_t count = tree == nullptr ? 0 : git_tree_entrycount(tree);
    for (size_t i = 0; i < count; ++i) {
      const git_tree_entry* entry = git_tree_entry_byindex(tree, i);
      (*entries)[git_tree_entry_name(entry)].*side = entry;
    }
  }

  static bool Same(const Sides& sides) {
    return sides.before != nullptr && sides.after != nullptr &&
           git_tree_entry_filemode(sides.before) == git_tree_entry_filemode(sides.after) &&
           git_oid_equal(git_tree_entry_id(sides.before), git_tree_entry_id(sides.after)) != 0;
  }

  static bool IsFile(const git_tree_entry* entry) {
    return entry != nullptr && git_tree_entry_filemode(entry) != GIT_FILEMODE_TREE;
  }

  // Returns null if `entry` is not a directory.
  Result<GitTree> TreeOf(const git_tree_entry* entry) {
    if (entry == nullptr || IsFile(entry)) return GitTree();
    git_tree* tree = nullptr;
    if (git_tree_lookup(&tree, git_, git_tree_entry_id(entry)) != 0) {
      return GitError(Code::kNotFound, "reading a tree");
    }
    return GitTree(tree);
  }

  git_repository* git_;
  int depth_ = 0;
  std::vector<std::string> paths_;
};

// Returns whether a sparse checkout leaves the file out, which is then not deleted.
bool IsLeftOut(git_repository* git, const git_diff_delta& delta) {
  git_index* raw = nullptr;
  if (delta.status != GIT_DELTA_DELETED || git_repository_index(&raw, git) != 0) return false;
  GitIndex index(raw);
  const git_index_entry* entry = git_index_get_bypath(raw, delta.old_file.path, 0);
  return entry != nullptr && (entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0;
}

std::vector<std::string> PathsOf(git_repository* git, git_diff* diff) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < git_diff_num_deltas(diff); ++i) {
    const git_diff_delta* delta = git_diff_get_delta(diff, i);
    if (IsLeftOut(git, *delta)) continue;
    paths.emplace_back(delta->new_file.path != nullptr ? delta->new_file.path
                                                       : delta->old_file.path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

// Returns why the content of the file on the disk is not shown; empty if it is.
std::string_view ReasonToHideOnDisk(git_repository* git, const git_diff_file& file,
                                    size_t* looked) {
  if (file.mode == GIT_FILEMODE_LINK) return {};
  const char* top = git_repository_workdir(git);
  Result<Fd> root = sys::Open(top != nullptr ? top : "", O_RDONLY | O_DIRECTORY);
  if (!root.ok()) return "cannot be read";
  Result<Fd> opened = sys::OpenBeneath(root.value().get(), file.path, O_RDONLY | O_NONBLOCK);
  if (!opened.ok()) return "cannot be read";
  // Fails for one that is larger.
  Result<std::string> text = sys::ReadAll(opened.value().get(), kShownBytesMax);
  if (!text.ok()) return "too large to show";
  if (text.value().size() > kLookedBytesMax - *looked) return "not shown, after so much else";
  *looked += text.value().size();
  return git_blob_data_is_binary(text.value().data(), text.value().size()) != 0 ? "binary" : "";
}

// Returns why the content of one side is not shown; empty if it is. Its size counts into `looked`.
std::string_view ReasonToHide(git_repository* git, const git_diff_file& file, bool on_disk,
                              size_t* looked) {
  bool is_blob = file.mode != 0 && file.mode != GIT_FILEMODE_COMMIT;
  if (!is_blob || (git_oid_is_zero(&file.id) != 0 && !on_disk)) return {};
  git_odb* raw_odb = nullptr;
  if (git_repository_odb(&raw_odb, git) != 0) return "cannot be read";
  GitOdb odb(raw_odb);
  if (on_disk && git_odb_exists(raw_odb, &file.id) == 0) {
    return ReasonToHideOnDisk(git, file, looked);
  }
  size_t size = 0;
  git_object_t type = GIT_OBJECT_ANY;
  if (git_odb_read_header(&size, &type, odb.get(), &file.id) != 0) return "cannot be read";
  if (size > kShownBytesMax) return "too large to show";
  if (size > kLookedBytesMax - *looked) return "not shown, after so much else";
  *looked += size;
  git_blob* raw = nullptr;
  if (git_blob_lookup(&raw, git, &file.id) != 0) return "cannot be read";
  GitBlob blob(raw);
  return git_blob_is_binary(blob.get()) != 0 ? "binary" : "";
}

std::string SectionOf(git_repository* git, git_diff* diff, size_t index,
                      const std::set<std::string>* withheld, size_t* looked) {
  const git_diff_delta* delta = git_diff_get_delta(diff, index);
  if (IsLeftOut(git, *delta)) return {};
  std::string_view reason = ReasonToHide(git, delta->old_file, false, looked);
  if (reason.empty()) reason = ReasonToHide(git, delta->new_file, withheld != nullptr, looked);
  if (withheld != nullptr && withheld->contains(delta->new_file.path)) {
    reason = "not shown: it may hold credentials";
  }
  git_patch* raw = nullptr;
  if (reason.empty() && git_patch_from_diff(&raw, diff, index) == 0 && raw != nullptr) {
    GitPatch patch(raw);
    git_buf text = {};
    if (git_patch_to_buf(&text, patch.get()) == 0) {
      std::string section(text.ptr, text.size);
      git_buf_dispose(&text);
      return section;
    }
  }
  if (reason.empty()) reason = "cannot be read";
  std::string path = delta->new_file.path;
  return "diff --git a/" + path + " b/" + path + "\n(" + std::string(reason) + ")\n";
}

}  // namespace

Result<Proposal> Repository::ReadProposal(const std::string& base, size_t patch_bytes_max,
                                          const std::set<std::string>* withheld) const {
  git_repository* git = state_->git.get();
  GitDiff diff =
      TRY(withheld != nullptr ? DiffWithUncommitted(git, base) : DiffToHead(git, base, true));
  Proposal proposal;
  proposal.paths = PathsOf(git, diff.get());
  if (patch_bytes_max == 0) return proposal;
  size_t looked = 0;
  for (size_t i = 0; i < git_diff_num_deltas(diff.get()); ++i) {
    // Beyond a bound on what is looked at, only that there is more.
    if (proposal.patch_bytes > 4 * patch_bytes_max) break;
    std::string section = SectionOf(git, diff.get(), i, withheld, &looked);
    proposal.patch_bytes += section.size();
    if (proposal.patch.size() < patch_bytes_max) {
      proposal.patch += section.substr(0, patch_bytes_max - proposal.patch.size());
    }
  }
  return proposal;
}

Result<HeadFacts> Repository::DescribeHead() const {
  constexpr std::string_view kBranches = "refs/heads/";
  constexpr std::string_view kOrigin = "refs/remotes/origin/";
  git_repository* git = state_->git.get();
  HeadFacts facts;
  if (unborn()) return facts;
  GitCommit head = TRY(FindCommit(git, "HEAD"));
  facts.commit = TRY(ResolveCommit("HEAD"));
  git_reference* raw = nullptr;
  if (git_reference_lookup(&raw, git, "HEAD") == 0) {
    GitReference named(raw);
    const char* target = git_reference_symbolic_target(raw);
    std::string_view name = target != nullptr ? target : "";
    if (name.starts_with(kBranches)) facts.branch = name.substr(kBranches.size());
  }
  const char* title = git_commit_summary(head.get());
  const char* body = git_commit_body(head.get());
  facts.title = title != nullptr ? title : "";
  facts.body = body != nullptr ? body : "";
  std::vector<std::string> candidates;
  if (git_reference_lookup(&raw, git, "refs/remotes/origin/HEAD") == 0) {
    GitReference named(raw);
    const char* target = git_reference_symbolic_target(raw);
    if (target != nullptr) candidates.emplace_back(target);
  }
  for (std::string_view place : {kOrigin, kBranches}) {
    for (const char* name : {"main", "master"}) candidates.push_back(std::string(place) + name);
  }
  for (const std::string& name : candidates) {
    const std::string_view place = name.starts_with(kOrigin) ? kOrigin : kBranches;
    git_oid id;
    if (!name.starts_with(place) || git_reference_name_to_id(&id, git, name.c_str()) != 0) continue;
    facts.base = name;
    facts.base_branch = name.substr(place.size());
    break;
  }
  return facts;
}

Result<std::vector<std::string>> Repository::DifferingPaths(const std::string& ref) const {
  git_repository* git = state_->git.get();
  GitCommit from = TRY(FindCommit(git, ref));
  GitCommit head = TRY(FindCommit(git, "HEAD"));
  GitTree before = TRY(CommitTree(git, *git_commit_id(from.get()), ref));
  GitTree after = TRY(CommitTree(git, *git_commit_id(head.get()), "HEAD"));
  if (git_oid_equal(git_tree_id(before.get()), git_tree_id(after.get())) != 0) {
    return std::vector<std::string>();
  }
  TreeComparison comparison(git);
  TRY(comparison.Compare(before.get(), after.get(), "").Context("comparing HEAD with " + ref));
  return comparison.Take();
}

Result<std::optional<Repository::GitFile>> Repository::FileAtRef(const std::string& ref,
                                                                 const std::string& path) const {
  GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  GitTree tree = TRY(CommitTree(state_->git.get(), *git_commit_id(commit.get()), ref));
  git_tree_entry* raw = nullptr;
  if (git_tree_entry_bypath(&raw, tree.get(), path.c_str()) != 0) return std::optional<GitFile>();
  std::unique_ptr<git_tree_entry, FreeWith<git_tree_entry_free>> entry(raw);
  if (git_tree_entry_type(raw) != GIT_OBJECT_BLOB) return std::optional<GitFile>();
  return std::optional(GitFile{static_cast<int>(git_tree_entry_filemode(raw)),
                               git_oid_tostr_s(git_tree_entry_id(raw))});
}

bool Repository::HasInHistory(const std::string& ref, const std::string& id) const {
  Result<GitCommit> commit = FindCommit(state_->git.get(), ref);
  git_oid wanted{};
  if (!commit.ok() || git_oid_fromstr(&wanted, id.c_str()) != 0) return false;
  const git_oid* own = git_commit_id(commit.value().get());
  return git_oid_equal(own, &wanted) != 0 ||
         git_graph_descendant_of(state_->git.get(), own, &wanted) == 1;
}

Result<std::optional<std::string>> Repository::ReadLinkAtRef(const std::string& ref,
                                                             const std::string& path) const {
  using Found = std::optional<std::string>;
  constexpr git_object_size_t kLinkBytesMax = 4096;
  GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  GitTree tree = TRY(CommitTree(state_->git.get(), *git_commit_id(commit.get()), ref));
  git_tree_entry* entry = nullptr;
  if (git_tree_entry_bypath(&entry, tree.get(), path.c_str()) != 0) return Found();
  std::unique_ptr<git_tree_entry, FreeWith<git_tree_entry_free>> owner(entry);
  if (git_tree_entry_filemode(entry) != GIT_FILEMODE_LINK) return Found();
  git_blob* raw = nullptr;
  if (git_blob_lookup(&raw, state_->git.get(), git_tree_entry_id(entry)) != 0) {
    return GitError(Code::kNotFound, "reading " + path + " at " + ref);
  }
  GitBlob blob(raw);
  if (git_blob_rawsize(blob.get()) > kLinkBytesMax) return Found();
  return Found(std::string(static_cast<const char*>(git_blob_rawcontent(blob.get())),
                           static_cast<size_t>(git_blob_rawsize(blob.get()))));
}

}  // namespace change
