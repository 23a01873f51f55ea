// SPDX-License-Identifier: Apache-2.0
// Captures what the agent changed, from the upper layer of the overlay over the checkout: the cost
// is O(what changed), not O(repository).
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "change/repository.h"

namespace change {

// Bounds on one capture. A file that exceeds one is named in ChangeSet::left_out and makes the set
// incomplete; nothing is cut in the middle.
struct CaptureLimits {
  int64_t files_max = 50'000;             // Changed files in the patch.
  int64_t path_bytes_max = 8 << 20;       // Their paths, which are held several times.
  int64_t file_bytes_max = 16 << 20;      // One file, before or after.
  int64_t content_bytes_max = 256 << 20;  // All files before and after, held in memory.
  int64_t patch_bytes_max = 64 << 20;     // The patch.
  int64_t entries_max = 2'000'000;        // Directory entries looked at.
};

constexpr size_t kConflictsMax = 1000;

enum class ChangeKind { kCreated, kModified, kDeleted, kRenamed, kMode };

// One `diff --git` section of the patch. Paths are bytes relative to the checkout, any byte but
// NUL: not necessarily UTF-8. A file that becomes a symbolic link, or the reverse, is a kDeleted
// and a kCreated of the same path, as git writes it.
struct FileChange {
  ChangeKind kind = ChangeKind::kModified;
  std::string path;      // The new name; for kDeleted, the name it had.
  std::string old_path;  // Only for kRenamed; otherwise empty.
  int old_mode = 0;      // 0100644, 0100755 or 0120000; 0 if there was no file.
  int new_mode = 0;      // Likewise; 0 for kDeleted.
  bool binary = false;   // Then additions and deletions are 0.
  int64_t additions = 0;
  int64_t deletions = 0;
  int64_t bytes = 0;        // Size of the new file; 0 for kDeleted.
  std::string link_target;  // The target of a symbolic link (new_mode 0120000); otherwise empty.
};

// A path that is not in the patch, and why ("named pipe", "larger than 16777216 bytes").
struct LeftOut {
  std::string path;
  std::string reason;
  bool lost = false;  // A patch should have had it: the set is not complete without.
};

// A path that both the agent and others changed. Others' version stays in the checkout, and the
// patch is without it.
struct Conflict {
  std::string path;
  std::string reason;  // What others did ("changed in the checkout while the agent worked").
  int mode = 0;        // The agent's version, as in FileChange; 0 if it removed the file.
  std::string bytes;   // Of a symbolic link, its target.
};

// The reason to leave out a Python environment that the agent made and no rule ignores. Its links
// lead out of the checkout, and its files name the place where they are.
inline constexpr char kEnvironmentMade[] =
    "a virtual environment that the agent made and no .gitignore names";
inline constexpr char kEnvironmentIgnored[] =
    "a virtual environment that the agent made, which works at its own place only";

struct ChangeSet {
  std::vector<FileChange> files;    // In the patch's order.
  std::string patch;                // The patch for `git apply`; empty if nothing changed.
  std::vector<Conflict> conflicts;  // At most kConflictsMax; more are left out, and lost.
  // At most 1000, whose paths have at most 256 KiB together; `left_out_count` counts all.
  std::vector<LeftOut> left_out;
  size_t left_out_bytes = 0;  // The length of the paths listed there.
  int64_t left_out_count = 0;
  // Untracked paths under the checkout's ignore rules; a directory is one.
  int64_t ignored_count = 0;
  // Content of ChangedTree::taken_out, where the agent wrote it.
  std::optional<std::string> taken_out;
  std::string taken_out_fault;  // Why it is there and not taken: "larger than 4194304 bytes".
  // False if something that a patch can express is missing from this one, by a limit or an
  // unreadable file.
  bool complete = true;
};

// Times of files.
bool IsLater(const timespec& one, const timespec& other);
bool IsSame(const timespec& one, const timespec& other);
// Returns the time (ctime) of `path`, no link in it followed; nullopt if it is not there.
std::optional<timespec> TimeBeneath(int directory, const std::string& path);
// Returns when the open file was made; nullopt where its file system does not say.
std::optional<timespec> BirthTime(int fd);

// The content of a path of a checkout.
struct FileContent {
  int mode = 0;         // As in FileChange; 0 if there is no file.
  std::string blob;     // The id of a blob (BlobId()): of the file's bytes,
  bool by_git = false;  // or of those that git has of the file, where it converts it.
};

// Returns the content of the file at `path`, no link in it followed; nullopt if it cannot be read
// or is larger than CaptureLimits::file_bytes_max.
std::optional<FileContent> ContentBeneath(int directory, const std::string& path);

// What a checkout had when the agent's tree was made from it (change/given/).
struct GivenFiles {
  // The files that no rule ignores; nullopt where the content was not seen in time.
  std::unordered_map<std::string, std::optional<FileContent>> files;
  bool whole = false;  // Nothing else was there, but for what is ignored.
};

// The facts that tell changes made to a checkout by other programs, while an agent worked on a
// tree made from it, from the agent's own.
struct Meanwhile {
  // When making the tree began, by the times of the checkout's files (sys::FileTime).
  std::optional<timespec> since = std::nullopt;
  struct Written {
    timespec checkout{};           // The time (ctime) of the path in the checkout since then,
    std::optional<timespec> tree;  // and of what the agent's tree had there; nullopt for nothing.
    std::optional<FileContent> content = std::nullopt;  // What was written; nullopt if not known.
  };
  // The paths that the runner itself wrote into the checkout later.
  std::map<std::string, Written> written = {};
  // The paths that others changed before a command first touched them, and the time at which that
  // command began: changes up to then are part of what it was given. An entry also applies to the
  // paths below it.
  struct Found {
    timespec until{};
    std::optional<FileContent> content = std::nullopt;  // What was found; nullopt if not known.
  };
  std::map<std::string, Found> found = {};
  const GivenFiles* given = nullptr;  // What the tree was made from; borrowed, may be null.

  // Adds the paths of `other`, which is about the same checkout.
  void Add(const Meanwhile& other);
  // Returns the content that the agent was given at `path`, or that the runner wrote there since;
  // nullopt if it is not known.
  std::optional<FileContent> Base(const std::string& path) const;
  // Returns whether `path`, of which `now` says what the checkout has there, has a new time. It may
  // have the same content all the same.
  bool Changed(const std::string& path, const struct stat& now) const;
  // Returns whether `path`, open as `fd`, was made there since, so that the agent never had it.
  // Where the file system does not say when files are made, the result is false.
  bool Made(const std::string& path, int fd) const;
  // Returns whether the agent's tree (a directory) has at `path` what was written from there.
  bool SameSinceWritten(int tree, const std::string& path) const;

 private:
  // Returns the entry of `found` for `path` or the nearest above it; else its end.
  std::map<std::string, Found>::const_iterator FoundAt(const std::string& path) const;
  // Returns the time up to which changes of `path` are part of what the agent was given. Only where
  // `since` is set.
  const timespec& FoundUntil(const std::string& path) const;
};

// The tree that the agent worked on, and left.
struct ChangedTree {
  int fd = -1;  // Borrowed: an open directory.
  // Set: the tree is a copy of the checkout, made before this time on that disk (ctime), and not a
  // layer over it.
  std::optional<timespec> copied = std::nullopt;
  std::vector<std::string> not_copied = {};  // Paths in the checkout; absolute, without links.
  // A file at the top that is a message and not a change, of at most `taken_out_bytes_max`.
  std::string taken_out = {};
  // Files that the agent was given in place of the checkout's: path -> text, or nullopt if it was
  // given none. They do not count as changes, unless the agent made another file of one: that is
  // left out, and lost.
  std::map<std::string, std::optional<std::string>> replaced = {};
  int64_t taken_out_bytes_max = 0;
  std::string seen_at = {};  // Where the agent saw the tree, if not at the checkout's own path.
  // A path that both changed, by content or mode, is a conflict: the base of the agent's change is
  // gone.
  Meanwhile meanwhile = {};
  // Why something of it is missing, where that is so: no set of its changes is complete then.
  std::string missing = {};

  // NOLINTNEXTLINE: a layer is the usual case.
  ChangedTree(int upper_fd) : fd(upper_fd) {}
};

// Which of the files that the agent made or changed.
enum class Part {
  kPatch,    // Those that git would commit.
  kIgnored,  // Those that the checkout's rules ignore, before the run and after it.
};

// Captures what the agent changed. `tree.fd` is the upper layer of an overlayfs whose lower layer
// is `checkout`, mounted without redirect_dir and metacopy. Whiteouts are 0/0 character devices or,
// in a directory whose overlay.opaque is "x", empty files with overlay.whiteout; both attribute
// namespaces, user. and trusted., count. No process may still write to the layer. Its content is
// hostile: it is opened without following a link, and only regular files are read. A file or
// directory its mode keeps unreadable is made readable in the layer (never in the checkout) to be
// read.
//
// The patch is against the files of `checkout` as they lie on disk, not against HEAD; against the
// index's where a sparse checkout leaves them out. Where
// `repository` says that git converts a file, the patch has its blobs: line endings, `$Id$`, UTF-16
// and pointers of git-lfs. A file that a filter driver converts, and new content that git-lfs would
// keep, is left out, and lost. In a copy, files that are older than it and were not moved are not
// read, and nothing was removed from a directory of which that is true; a copy that has nothing of
// the checkout is left out as a whole, and lost. `repository` is
// that checkout's, or null: then nothing counts as ignored. Any `.git` is skipped, file or
// directory. A new file is skipped if the agent's .gitignore files ignore it and the index in its
// tree is without it, and is listed in `left_out` if the checkout's own did not. So is a new Python
// environment as a whole (kEnvironmentMade). A change in a
// repository of its own inside the checkout, such as a submodule, is left out and makes the set
// incomplete; not so what the agent checked out of a submodule of which the checkout has nothing.
// Permission bits become 0644 or 0755 by the owner's execute bit.
//
// Of kIgnored, which a rule of the agent's own adds nothing to, git converts nothing, and what the
// agent removed is not part; a new Python environment is left out, and so is what something of
// another kind is in the way of in the checkout.
//
// Fails with kIo if a layer cannot be read at all.
Result<ChangeSet> CaptureChanges(const ChangedTree& tree, const std::string& checkout,
                                 const Repository* repository, const CaptureLimits& limits,
                                 Part part = Part::kPatch);

}  // namespace change
