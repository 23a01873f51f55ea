// SPDX-License-Identifier: Apache-2.0
// Finds which files changed between two looks at a layer: what one command of a sandbox that lasts
// did. No content is kept, so no patch; that is change/capture.h.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "change/capture.h"

namespace change {

struct TouchedFile {
  ChangeKind kind = ChangeKind::kModified;
  std::string path;      // Bytes, relative to the checkout.
  std::string old_path;  // Only for kRenamed.
  bool directory = false;
  // True if, at the previous look, the lower layer's version was visible at this path (for
  // kRenamed, at `old_path`).
  bool found_lower = false;
};

struct TouchedFiles {
  std::vector<TouchedFile> files;  // Sorted by path.
  // False if something could not be read, or there was too much to look at.
  bool complete = true;
};

// Looks at the upper layer of an overlay over a checkout, or at a copy of one, while the sandbox
// lives: nothing in it is changed, and no link is followed. A file counts as changed by its times
// of change (ctime), which nothing inside can set back, so also when its other times were. What
// was only copied up, with the content that it had, has not changed. `.git` is not looked at.
class LayerWatch {
 public:
  // Entries of the layer that one look takes in, and of deleted directories.
  static constexpr size_t kEntriesMax = 200'000;
  // The bound on their paths together: the supervisor keeps them several times, outside of the
  // sandbox's limits.
  static constexpr size_t kPathBytesMax = size_t{16} << 20;

  // The state that the first look compares with.
  enum class Since {
    kNow,
    kBeginning,  // An empty layer. Of a copy, which has none: as kNow.
  };

  // `layer` is borrowed and outlives this. `copied` is true if it is a copy of `lower`, not a
  // layer.
  LayerWatch(int layer, Fd lower, bool copied, Since since = Since::kNow,
             size_t path_bytes_max = kPathBytesMax);

  // Returns what changed since the previous look.
  TouchedFiles Look();
  // Waits, for a moment at most, until a change can be told from what the previous look saw. To be
  // called before that starts whose changes the next look is to tell.
  void Settle() const;

 private:
  struct Entry {
    uint64_t inode = 0;
    mode_t mode = 0;
    int64_t bytes = 0;
    timespec modified{};
    timespec changed{};
    bool whiteout = false;
    bool opaque = false;  // True for a directory that hides the lower one.
  };
  using Entries = std::map<std::string, Entry>;
  // The paths that may have changed.
  struct Candidates {
    std::set<std::string> paths;
    size_t hidden_bytes = 0;  // The size of the paths that AddHidden() added.
  };

  Entries Scan(bool* complete);
  static bool IsSameEntry(const Entry& one, const Entry& other);
  std::vector<Entries::const_iterator> Compare(const Entries& after, Candidates* candidates) const;
  bool IsVisible(const Entries& entries, const std::string& path) const;
  bool FoundLower(const std::string& path) const;
  bool Exists(const Entries& entries, const std::string& path, mode_t* mode) const;
  void AddHidden(const std::string& path, const Entries& after, bool* complete,
                 Candidates* candidates) const;
  bool CopiedUp(const std::string& path) const;
  void PairRenames(const Entries& after, std::vector<TouchedFile>* files) const;

  int layer_;
  Fd lower_;
  bool copied_;
  size_t path_bytes_max_;
  Entries before_;
  timespec newest_{};  // The latest time of change that was seen.
};

// Marks the directories that only the upper layer has, before the same are made in the lower one:
// the overlay that is mounted goes on without a lower directory there, so it hides nothing that is
// deleted there later. Such a directory hides the lower one then, as one made anew does. `upper` is
// a layer, not a copy. Fails with kIo if one cannot be marked.
Status HideFutureLower(int upper, int lower);

// The moment at which a command began to work on a layer over a checkout, by the clock that stamps
// files of the layer and by that of the checkout (sys::FileTime).
struct Beginning {
  timespec layer{};
  timespec checkout{};
};

// Adds to `meanwhile` the paths that a command was the first to touch, and that others had changed
// in the checkout after `since` and before the command began: the command was given their version.
// `layer` is the open upper layer; `touched` is what changed in it since the previous command.
void NoteFound(const std::string& checkout, int layer, const std::vector<TouchedFile>& touched,
               const timespec& since, const Beginning& beginning, Meanwhile* meanwhile);

}  // namespace change
