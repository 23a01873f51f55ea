// SPDX-License-Identifier: Apache-2.0
#include "change/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/sys.h"
#include "change/convert.h"
#include "change/memory_repository.h"
#include "change/patch.h"
#include "change/rules/index_paths.h"
#include "change/tree_edit.h"
#include "change/tree_file.h"
#include "change/upper_walk.h"

namespace change {
namespace {

constexpr char kNoBase[] = "nothing of the checkout is in the directory that the agent worked in";
constexpr char kReplaced[] = "the agent was given another version of it than the checkout has";

bool IsBlob(const std::string& bytes, const std::string& id) {
  Result<std::string> own = BlobId(bytes);
  return own.ok() && own.value() == id;
}

// Reads what the walk finds, keeps what differs, within the limits.
class Collector {
 public:
  // `git` is the checkout's repository, or null.
  Collector(MemoryRepository repository, const Repository* git, const ChangedTree& tree,
            int lower_fd, const CaptureLimits& limits, Part part)
      : repository_(std::move(repository)),
        git_(git),
        part_(part),
        tree_(tree),
        upper_(tree.fd),
        lower_(lower_fd),
        limits_(limits) {}

  // Takes out the file, whatever the ignore rules say about it. One that was there before does not
  // count.
  void TakeOut() {
    if (tree_.taken_out.empty()) return;
    Result<TreeFile> now = TreeFile::Open(upper_, tree_.taken_out, Unreadable::kMakeReadable);
    if (!now.ok()) {
      if (now.error().code != Code::kNotFound) changes_.taken_out_fault = now.error().what;
      return;
    }
    const auto mode = static_cast<mode_t>(now.value().mode());
    Result<TreeFile> was = TreeFile::Open(lower_, tree_.taken_out, Unreadable::kFail);
    if (was.ok() && tree_.copied) {
      Result<bool> same = now.value().SameBytes(was.value());
      const bool same_kind = was.value().mode() == now.value().mode();
      if (same_kind && (mode == 0 || !same.ok() || same.value())) return;
    }
    if (!S_ISREG(mode)) {
      struct stat facts = {};
      const bool there =
          ::fstatat(upper_, tree_.taken_out.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
      // A character device says that the agent removed the one that was there.
      if (there && !S_ISCHR(facts.st_mode)) {
        changes_.taken_out_fault = S_ISLNK(facts.st_mode)   ? "a symbolic link is not followed"
                                   : S_ISDIR(facts.st_mode) ? "a directory"
                                                            : "not a regular file";
      }
      return;
    }
    Result<std::string> bytes = now.value().Read(tree_.taken_out_bytes_max);
    if (bytes.ok()) {
      changes_.taken_out = std::move(bytes).value();
    } else {
      changes_.taken_out_fault = bytes.error().what;
    }
  }

  Status Present(const std::string& path) {
    if (path == tree_.taken_out) return Ok();
    Result<TreeFile> now = TreeFile::Open(upper_, path, Unreadable::kMakeReadable);
    if (!now.ok()) {
      LeaveOut(changes_, path, "cannot be read", true);
      return Ok();
    }
    if (auto replaced = tree_.replaced.find(path); replaced != tree_.replaced.end()) {
      Result<std::string> text = now.value().Read(limits_.file_bytes_max);
      bool same = text.ok() && replaced->second && text.value() == *replaced->second;
      if (!same) LeaveOut(changes_, path, kReplaced, true);
      return Ok();
    }
    std::optional<TreeFile> was;
    if (!OpenBase(path, was)) return Ok();
    if (part_ == Part::kIgnored && !was.has_value() && IsTaken(path)) {
      LeaveOut(changes_, path, "something of another kind is there in the checkout", true);
      return Ok();
    }
    if (was.has_value() && was->mode() == now.value().mode()) {
      Result<bool> same = now.value().SameBytes(*was);
      if (same.ok() && same.value()) return Ok();
    }
    if (ChangedMeanwhile(path, was, &now.value())) return Ok();
    return Add(path, was, &now.value());
  }

  Status Gone(const std::string& path) {
    if (path == tree_.taken_out) return Ok();
    if (auto replaced = tree_.replaced.find(path); replaced != tree_.replaced.end()) {
      if (replaced->second) LeaveOut(changes_, path, kReplaced, true);
      return Ok();
    }
    std::optional<TreeFile> was;
    if (!OpenBase(path, was) || !was.has_value()) return Ok();
    if (ChangedMeanwhile(path, was, nullptr)) return Ok();
    return Add(path, was, nullptr);
  }

  void GoneMeanwhile(const std::string& path) { SetAside(path, kChangedMeanwhile, nullptr); }

  void Submodule(const std::string& path) { submodules_.push_back(path + "/"); }

  ChangeSet& changes() { return changes_; }

  Result<ChangeSet> Finish() {
    if (git_ != nullptr && part_ == Part::kPatch) {
      TRY(ConvertToBlobs(*git_, repository_, before_, after_, changes_));
    }
    TRY(RenderPatch(repository_, before_, after_, limits_.patch_bytes_max, changes_));
    return std::move(changes_);
  }

 private:
  // Gives the lower layer's file, or what a sparse checkout leaves out there; nullopt if there is
  // neither. Returns false if it cannot be read.
  bool OpenBase(const std::string& path, std::optional<TreeFile>& was) {
    Result<TreeFile> base = TreeFile::Open(lower_, path, Unreadable::kFail);
    if (base.ok() && base.value().mode() != 0) was = std::move(base).value();
    if (base.ok()) return true;
    if (base.error().code == Code::kNotFound) return git_ == nullptr || OpenSparse(path, was);
    LeaveOut(changes_, path, "cannot be read in the checkout", true);
    return false;
  }

  bool OpenSparse(const std::string& path, std::optional<TreeFile>& was) {
    Result<std::optional<Repository::GitFile>> file = git_->SparseFileAt(path);
    if (!file.ok()) {
      LeaveOut(changes_, path, file.error().what, true);
      return false;
    }
    if (file.value()) was.emplace(file.value()->mode, std::move(file.value()->blob));
    return true;
  }

  // Returns whether the lower layer has anything at `path`, or no directory above it.
  bool IsTaken(const std::string& path) const {
    Result<Fd> place = sys::OpenBeneath(lower_, path, O_PATH | O_NOFOLLOW);
    return place.ok() || place.error().os_error != ENOENT;
  }

  // Returns true if `was` is not what the agent was given: that stays, and so does `now`, which its
  // tree has (null for nothing), as a conflict.
  bool ChangedMeanwhile(const std::string& path, const std::optional<TreeFile>& was,
                        const TreeFile* now) {
    const Meanwhile& meanwhile = tree_.meanwhile;
    const bool same = meanwhile.SameSinceWritten(tree_.fd, path);
    const std::optional<FileContent> base = meanwhile.Base(path);
    // An agent that has what it was given has changed nothing.
    const auto set_aside = [&](const char* reason) {
      if (now == nullptr || Is(base, path, *now) != true) SetAside(path, reason, now);
      return true;
    };
    if (!was.has_value()) {
      if (same) return true;
      if (base && base->mode != 0) return set_aside(kRemovedMeanwhile);
      return TakenByOthers(path) && set_aside(kChangedMeanwhile);
    }
    const bool newer = meanwhile.Changed(path, was->facts());
    // What lies in a directory that was moved here has the times that it had.
    if (!newer && !(base && ChangedAbove(path))) return false;
    if (newer && same) return true;
    if (Is(base, path, *was).value_or(!newer)) return false;
    if (now != nullptr || WasGiven(base, path)) return set_aside(kChangedMeanwhile);
    LeaveOut(changes_, path, kChangedMeanwhile, false);
    return true;
  }

  // Returns whether the file has this content; nullopt if one of them is not known.
  std::optional<bool> Is(const std::optional<FileContent>& content, const std::string& path,
                         const TreeFile& file) {
    if (!content) return std::nullopt;
    if (content->mode != file.mode()) return false;
    Result<std::string> bytes = file.Read(limits_.file_bytes_max);
    if (!bytes.ok()) return std::nullopt;
    if (IsBlob(bytes.value(), content->blob)) return true;
    if (!content->by_git || git_ == nullptr || file.mode() == kLinkMode) return false;
    if (!blobs_) blobs_.emplace(*git_);
    Result<std::string> blob = blobs_->Of(path, bytes.value());
    if (!blob.ok()) return std::nullopt;
    return IsBlob(blob.value(), content->blob);
  }

  // Returns false for a file that others made where the agent had none.
  bool WasGiven(const std::optional<FileContent>& base, const std::string& path) const {
    if (base) return base->mode != 0;
    Result<Fd> place = sys::OpenBeneath(lower_, path, O_PATH | O_NOFOLLOW);
    return !place.ok() || !tree_.meanwhile.Made(path, place.value().get());
  }

  // Returns whether others made a directory of `path`, or something else of one above it.
  bool TakenByOthers(const std::string& path) {
    Result<Fd> place = sys::OpenBeneath(lower_, path, O_PATH | O_NOFOLLOW);
    if (place.ok()) return tree_.meanwhile.Made(path, place.value().get());
    const int error = place.error().os_error;
    return (error == ENOTDIR || error == ELOOP) && ChangedAbove(path);
  }

  // Returns whether others moved, made or changed a directory above `path`, beneath the top.
  bool ChangedAbove(const std::string& path) {
    for (size_t end = path.rfind('/'); end != std::string::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      const std::string above = path.substr(0, end);
      auto known = changed_above_.find(above);
      if (known == changed_above_.end()) {
        struct stat st {};
        Result<Fd> place = sys::OpenBeneath(lower_, above, O_PATH | O_NOFOLLOW);
        const bool there = place.ok() && ::fstat(place.value().get(), &st) == 0;
        known = changed_above_.emplace(above, there && tree_.meanwhile.Changed(above, st)).first;
      }
      if (known->second) return true;
    }
    return false;
  }

  void SetAside(const std::string& path, const char* reason, const TreeFile* now) {
    Conflict conflict{path, reason, 0, {}};
    if (now != nullptr) {
      Result<std::string> bytes =
          now->Read(std::min(limits_.file_bytes_max, limits_.content_bytes_max - content_bytes_));
      if (!bytes.ok()) return LeaveOut(changes_, path, reason, true);
      content_bytes_ += now->size();
      conflict.mode = now->mode();
      conflict.bytes = std::move(bytes).value();
    }
    if (changes_.conflicts.size() >= kConflictsMax) return LeaveOut(changes_, path, reason, true);
    changes_.conflicts.push_back(std::move(conflict));
  }

  Status Add(const std::string& path, const std::optional<TreeFile>& was, const TreeFile* now) {
    for (const std::string& submodule : submodules_) {
      if (!path.starts_with(submodule)) continue;
      LeaveOut(changes_, path,
               "a change in the submodule " + submodule.substr(0, submodule.size() - 1) +
                   ", which a patch of this repository cannot contain",
               true);
      return Ok();
    }
    int64_t size = (was.has_value() ? was->size() : 0) + (now != nullptr ? now->size() : 0);
    if (files_ >= limits_.files_max) {
      LeaveOut(changes_, path, "more than " + std::to_string(limits_.files_max) + " files changed",
               true);
      return Ok();
    }
    path_bytes_ += static_cast<int64_t>(path.size());
    if (path_bytes_ > limits_.path_bytes_max) {
      LeaveOut(changes_, path,
               "the names of changed files have more than " +
                   std::to_string(limits_.path_bytes_max) + " bytes",
               true);
      return Ok();
    }
    if (std::max(was.has_value() ? was->size() : 0, now != nullptr ? now->size() : 0) >
        limits_.file_bytes_max) {
      LeaveOut(changes_, path, "larger than " + std::to_string(limits_.file_bytes_max) + " bytes",
               true);
      return Ok();
    }
    if (content_bytes_ + size > limits_.content_bytes_max) {
      LeaveOut(changes_, path,
               "more than " + std::to_string(limits_.content_bytes_max) + " bytes changed", true);
      return Ok();
    }
    std::optional<TreeEntry> before;
    std::optional<TreeEntry> after;
    for (const TreeFile* file : {was.has_value() ? &*was : nullptr, now}) {
      if (file == nullptr) continue;
      Result<std::string> bytes = file->Read(limits_.file_bytes_max);
      if (!bytes.ok()) {
        LeaveOut(changes_, path, bytes.error().what, true);
        return Ok();
      }
      git_oid id = TRY(repository_.AddBlob(bytes.value()));
      (file == now ? after : before) = TreeEntry{id, file->mode()};
    }
    if (before.has_value()) before_[path] = *before;
    if (after.has_value()) after_[path] = *after;
    ++files_;
    content_bytes_ += size;
    return Ok();
  }

  MemoryRepository repository_;
  const Repository* git_;
  Part part_;
  const ChangedTree& tree_;
  int upper_;
  int lower_;
  const CaptureLimits& limits_;
  ChangeSet changes_;
  std::vector<std::string> submodules_;  // Paths with a trailing `/`.
  TreeEntries before_;
  TreeEntries after_;
  int64_t files_ = 0;
  int64_t path_bytes_ = 0;
  int64_t content_bytes_ = 0;
  std::optional<CheckoutBlobs> blobs_;
  std::map<std::string, bool> changed_above_;  // By directory.
};

// Returns the bytes of a file of the agent's index; none if it is missing or too large.
IndexPaths ReadIndex(int tree, const std::string& path) {
  constexpr int64_t kIndexBytesMax = 64 << 20;
  Result<TreeFile> index = TreeFile::Open(tree, path, Unreadable::kMakeReadable);
  if (!index.ok() || index.value().mode() == kLinkMode) return {};
  Result<std::string> bytes = index.value().Read(kIndexBytesMax);
  return bytes.ok() ? ReadIndexPaths(bytes.value()) : IndexPaths();
}

// The paths in the index of the agent's tree; none if that is not in it: beneath the repository's
// top, or where `.git` is a file. What an untouched file of it has, the checkout's has, too.
std::set<std::string> AddedIn(const ChangedTree& tree, const Repository* repository) {
  if (repository == nullptr || !repository->prefix().empty()) return {};
  IndexPaths index = ReadIndex(tree.fd, ".git/index");
  if (!index.shared.empty()) {
    index.paths.merge(ReadIndex(tree.fd, ".git/sharedindex." + index.shared).paths);
  }
  return std::move(index.paths);
}

}  // namespace

void Meanwhile::Add(const Meanwhile& other) {
  written.insert(other.written.begin(), other.written.end());
  found.insert(other.found.begin(), other.found.end());
  if (other.given != nullptr) given = other.given;
}

std::map<std::string, Meanwhile::Found>::const_iterator Meanwhile::FoundAt(
    const std::string& path) const {
  for (size_t end = path.size(); !found.empty() && end != std::string::npos && end > 0;) {
    auto at = found.find(path.substr(0, end));
    if (at != found.end()) return at;
    end = path.rfind('/', end - 1);
  }
  return found.end();
}

const timespec& Meanwhile::FoundUntil(const std::string& path) const {
  auto at = FoundAt(path);
  return at == found.end() ? *since : at->second.until;
}

std::optional<FileContent> Meanwhile::Base(const std::string& path) const {
  auto own = written.find(path);
  auto at = FoundAt(path);
  if (own != written.end() &&
      (at == found.end() || !IsLater(at->second.until, own->second.checkout))) {
    return own->second.content;
  }
  if (at != found.end()) return at->first == path ? at->second.content : std::nullopt;
  if (given == nullptr) return std::nullopt;
  auto there = given->files.find(path);
  if (there != given->files.end()) return there->second;
  return given->whole ? std::optional<FileContent>(std::in_place) : std::nullopt;
}

bool Meanwhile::Changed(const std::string& path, const struct stat& now) const {
  if (!since || !IsLater(now.st_ctim, FoundUntil(path))) return false;
  auto own = written.find(path);
  return own == written.end() || !IsSame(own->second.checkout, now.st_ctim);
}

bool Meanwhile::Made(const std::string& path, int fd) const {
  const std::optional<timespec> made = BirthTime(fd);
  if (!since || !made) return false;
  auto own = written.find(path);
  return IsLater(*made, own == written.end() ? FoundUntil(path) : own->second.checkout);
}

bool Meanwhile::SameSinceWritten(int tree, const std::string& path) const {
  auto own = written.find(path);
  if (own == written.end()) return false;
  const std::optional<timespec> now = TimeBeneath(tree, path);
  const std::optional<timespec>& then = own->second.tree;
  if (!now || !then) return !now && !then;
  return IsSame(*now, *then);
}

bool IsLater(const timespec& one, const timespec& other) {
  return one.tv_sec != other.tv_sec ? one.tv_sec > other.tv_sec : one.tv_nsec > other.tv_nsec;
}

bool IsSame(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

std::optional<timespec> BirthTime(int fd) {
  struct statx facts {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &facts) != 0 ||
      (facts.stx_mask & STATX_BTIME) == 0) {
    return std::nullopt;
  }
  return timespec{facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec};
}

std::optional<timespec> TimeBeneath(int directory, const std::string& path) {
  struct stat st {};
  Result<Fd> place = sys::OpenBeneath(directory, path, O_PATH | O_NOFOLLOW);
  if (!place.ok() || ::fstat(place.value().get(), &st) != 0) return std::nullopt;
  return st.st_ctim;
}

std::optional<FileContent> ContentBeneath(int directory, const std::string& path) {
  Result<TreeFile> file = TreeFile::Open(directory, path, Unreadable::kFail);
  if (!file.ok()) {
    if (file.error().code == Code::kNotFound) return FileContent{};
    return std::nullopt;
  }
  Result<std::string> bytes = file.value().Read(CaptureLimits().file_bytes_max);
  if (!bytes.ok() || file.value().mode() == 0 || !StartGit().ok()) return std::nullopt;
  Result<std::string> blob = BlobId(bytes.value());
  if (!blob.ok()) return std::nullopt;
  return FileContent{file.value().mode(), std::move(blob).value()};
}

Result<ChangeSet> CaptureChanges(const ChangedTree& tree, const std::string& checkout,
                                 const Repository* repository, const CaptureLimits& limits,
                                 Part part) {
  Fd lower = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY).Context("opening the checkout"));
  MemoryRepository memory = TRY(MemoryRepository::Create());
  Collector collector(std::move(memory), repository, tree, lower.get(), limits, part);
  if (part == Part::kPatch) collector.TakeOut();
  if (!tree.missing.empty()) LeaveOut(collector.changes(), ".", tree.missing, true);
  UpperVisitor visitor;
  visitor.present = [&](const std::string& path) { return collector.Present(path); };
  visitor.gone = [&](const std::string& path) { return collector.Gone(path); };
  visitor.left_out = [&](const std::string& path, const std::string& reason, bool lost) {
    LeaveOut(collector.changes(), path, reason, lost);
  };
  visitor.gone_meanwhile = [&](const std::string& path) { collector.GoneMeanwhile(path); };
  visitor.submodule = [&](const std::string& path) { collector.Submodule(path); };
  visitor.ignored = [&](const std::string&) { ++collector.changes().ignored_count; };
  CopyFacts copy;
  if (tree.copied) copy = FactsOfCopy(tree, checkout);
  if (tree.copied && TRY(HasNoBase(tree.fd, lower.get(), copy))) {
    LeaveOut(collector.changes(), ".", kNoBase, true);
    return collector.Finish();
  }
  const std::set<std::string> added = AddedIn(tree, repository);
  TRY(WalkUpper({.upper = tree.fd,
                 .lower = lower.get(),
                 .copy = tree.copied ? &copy : nullptr,
                 .meanwhile = &tree.meanwhile,
                 .added = &added,
                 .part = part},
                repository, limits.entries_max, visitor));
  return collector.Finish();
}

}  // namespace change
