// SPDX-License-Identifier: Apache-2.0
#include "change/patch.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace change {
namespace {

constexpr int64_t kLeftOutMax = 1000;
constexpr size_t kLeftOutBytesMax = size_t{256} << 10;
// Similarity is O(sources x targets); above this only files with equal bytes are paired.
constexpr size_t kSimilarFilesMax = 1000;

Result<GitDiff> Compare(MemoryRepository& repository, const TreeEntries& before,
                        const TreeEntries& after) {
  GitTree old_tree = TRY(repository.MakeTree(before));
  GitTree new_tree = TRY(repository.MakeTree(after));
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  options.flags = GIT_DIFF_SHOW_BINARY;
  options.id_abbrev = GIT_OID_HEXSZ;  // `git apply` takes binary files by full id only.
  git_diff* raw = nullptr;
  if (git_diff_tree_to_tree(&raw, repository.get(), old_tree.get(), new_tree.get(), &options) !=
      0) {
    return GitError(Code::kBug, "comparing the changes");
  }
  GitDiff diff(raw);
  git_diff_find_options find;
  git_diff_find_options_init(&find, GIT_DIFF_FIND_OPTIONS_VERSION);
  find.flags = GIT_DIFF_FIND_RENAMES;
  if (after.size() + before.size() > kSimilarFilesMax) find.flags |= GIT_DIFF_FIND_EXACT_MATCH_ONLY;
  find.rename_limit = 200;
  if (git_diff_find_similar(raw, &find) != 0) return GitError(Code::kBug, "finding renames");
  return diff;
}

FileChange Describe(const git_diff_delta& delta) {
  FileChange change;
  change.path = delta.status == GIT_DELTA_DELETED ? delta.old_file.path : delta.new_file.path;
  change.old_mode = delta.status == GIT_DELTA_ADDED ? 0 : delta.old_file.mode;
  change.new_mode = delta.status == GIT_DELTA_DELETED ? 0 : delta.new_file.mode;
  switch (delta.status) {
    case GIT_DELTA_ADDED:
      change.kind = ChangeKind::kCreated;
      break;
    case GIT_DELTA_DELETED:
      change.kind = ChangeKind::kDeleted;
      break;
    case GIT_DELTA_RENAMED:
      change.kind = ChangeKind::kRenamed;
      change.old_path = delta.old_file.path;
      break;
    default:
      change.kind = git_oid_equal(&delta.old_file.id, &delta.new_file.id) != 0
                        ? ChangeKind::kMode
                        : ChangeKind::kModified;
  }
  return change;
}

// Orders the sections by path; where a file gives way to a link or the reverse, the deletion comes
// first: `git apply` takes them in this order only, and finding renames leaves them in the other.
std::vector<size_t> SectionOrder(git_diff* diff) {
  std::vector<size_t> order(git_diff_num_deltas(diff));
  std::iota(order.begin(), order.end(), size_t{0});
  auto key = [&](size_t at) {
    const git_diff_delta* delta = git_diff_get_delta(diff, at);
    bool deleted = delta->status == GIT_DELTA_DELETED;
    return std::pair(std::string_view(deleted ? delta->old_file.path : delta->new_file.path),
                     !deleted);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

// A directory whose name ends in a space makes a head line `git apply` cannot read ("a/end /c b/end
// /c"), unless it is quoted. Gives that line without its newline, or nothing when it can stay.
std::string QuotedHead(std::string_view section, const std::string& path) {
  if (path.find(" /") == std::string::npos) return {};
  if (!section.starts_with("diff --git a/" + path + " b/" + path + "\n")) return {};
  return "diff --git \"a/" + path + "\" \"b/" + path + "\"";
}

// One section of the patch; its text is added when it fits.
Status AddSection(MemoryRepository& repository, git_diff* diff, size_t at, int64_t patch_bytes_max,
                  ChangeSet& changes) {
  const git_diff_delta* delta = git_diff_get_delta(diff, at);
  FileChange change = Describe(*delta);
  git_patch* raw = nullptr;
  if (git_patch_from_diff(&raw, diff, at) != 0) return GitError(Code::kBug, "comparing a file");
  GitPatch patch(raw);
  git_buf text = GIT_BUF_INIT;
  if (git_patch_to_buf(&text, raw) != 0) return GitError(Code::kBug, "writing the patch of a file");
  std::string_view section(text.ptr, text.size);
  // libgit2 says of a binary file with another name or mode but the same bytes that it differs, and
  // `git apply` then asks for the data.
  if (git_oid_equal(&delta->old_file.id, &delta->new_file.id) != 0) {
    section = section.substr(0, std::min(section.find("\nBinary files "), section.size() - 1) + 1);
  }
  std::string head = QuotedHead(section, change.path);
  if (!head.empty()) section.remove_prefix(section.find('\n'));
  size_t patch_bytes = changes.patch.size() + head.size() + section.size();
  bool fits = static_cast<int64_t>(patch_bytes) <= patch_bytes_max;
  if (fits) (changes.patch += head) += section;
  git_buf_dispose(&text);
  if (!fits) {
    LeaveOut(changes, change.path,
             "the patch would be larger than " + std::to_string(patch_bytes_max) + " bytes", true);
    return Ok();
  }
  change.binary = (git_patch_get_delta(raw)->flags & GIT_DIFF_FLAG_BINARY) != 0;
  size_t context = 0;
  size_t additions = 0;
  size_t deletions = 0;
  if (!change.binary && git_patch_line_stats(&context, &additions, &deletions, raw) == 0) {
    change.additions = static_cast<int64_t>(additions);
    change.deletions = static_cast<int64_t>(deletions);
  }
  if (change.new_mode != 0) {
    std::string bytes = TRY(repository.ReadBlob(delta->new_file.id));
    change.bytes = static_cast<int64_t>(bytes.size());
    if (change.new_mode == 0120000) change.link_target = std::move(bytes);
  }
  changes.files.push_back(std::move(change));
  return Ok();
}

}  // namespace

void LeaveOut(ChangeSet& changes, const std::string& path, const std::string& reason, bool lost) {
  const bool fits = changes.left_out_bytes + path.size() <= kLeftOutBytesMax;
  if (changes.left_out_count++ < kLeftOutMax && fits) {
    changes.left_out_bytes += path.size();
    changes.left_out.push_back({path, reason, lost});
  }
  if (lost) changes.complete = false;
}

Status RenderPatch(MemoryRepository& repository, const TreeEntries& before,
                   const TreeEntries& after, int64_t patch_bytes_max, ChangeSet& changes) {
  if (before.empty() && after.empty()) return Ok();
  GitDiff diff = TRY(Compare(repository, before, after));
  for (size_t at : SectionOrder(diff.get())) {
    TRY(AddSection(repository, diff.get(), at, patch_bytes_max, changes));
  }
  return Ok();
}

}  // namespace change
