// SPDX-License-Identifier: Apache-2.0
// Finds every path the upper layer of an overlay touches. Internal to change/.
#pragma once

#include <time.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "change/capture.h"
#include "change/repository.h"

namespace change {

// Returns the value of overlay.NAME in either of overlayfs's attribute namespaces; 0 if there is
// none.
char OverlayMark(int fd, const char* name);

// Returns `name` in `directory`; the top is "".
std::string PathIn(const std::string& directory, const std::string& name);

// The bound on the names of one directory, which are held in memory outside of a run's limits.
inline constexpr size_t kNameBytesMax = size_t{32} << 20;

// Returns the names in a directory, without `.` and `..`, sorted. Fails with kInvalid for more than
// `entries_max`, and for more than `bytes_max` bytes of them.
Result<std::vector<std::string>> ListNames(int directory, int64_t entries_max,
                                           size_t bytes_max = kNameBytesMax);

// The callbacks of the walk, path by path, each path at most once per callback.
struct UpperVisitor {
  // A regular file or a symbolic link lies in the upper layer; whether it differs from the lower's
  // is not known yet.
  std::function<Status(const std::string& path)> present;
  // A file or link of the lower layer is no longer there.
  std::function<Status(const std::string& path)> gone;
  // Something the walk did not follow. `lost` when a patch could have expressed it.
  std::function<void(const std::string& path, const std::string& reason, bool lost)> left_out;
  // A directory that the agent removed, and in which others may have changed something. Called only
  // if `meanwhile` does not know what was in it.
  std::function<void(const std::string& path)> gone_meanwhile = {};
  // A directory whose content belongs to a repository of its own; called before any of the content
  // is reported.
  std::function<void(const std::string& path)> submodule;
  // An untracked path under the ignore rules; a directory stands for all beneath it.
  std::function<void(const std::string& path)> ignored;
};

// Returns "directory/name"; `directory` is relative and may be empty.
std::string PathIn(const std::string& directory, const std::string& name);

// The reasons to leave out what others changed.
inline constexpr char kChangedMeanwhile[] = "changed in the checkout while the agent worked";
inline constexpr char kRemovedMeanwhile[] = "removed in the checkout while the agent worked";

// The facts about a tree that is a copy of the lower one, not a layer over it.
struct CopyFacts {
  timespec made{};                    // The time since which a changed file (ctime) may differ.
  std::vector<std::string> left_out;  // Relative paths of the lower tree that are not in it.
};

// `tree` must be a copy.
CopyFacts FactsOfCopy(const ChangedTree& tree, const std::string& checkout);

// Returns whether a copy has nothing of the checkout, not even `.git`: either the agent never had
// the checkout, or it removed all of it. The two cannot be distinguished, and a patch that deletes
// every file would be wrong for the first.
Result<bool> HasNoBase(int upper, int lower, const CopyFacts& copy);

// Directories, borrowed.
struct WalkedLayers {
  int upper;  // -1 for nothing: all of the lower one is gone.
  int lower;
  const CopyFacts* copy = nullptr;  // Null if `upper` is a layer.
  const Meanwhile* meanwhile = nullptr;
  const std::set<std::string>* added = nullptr;  // The paths of the agent's index.
  bool with_git = false;                         // The files in a `.git` are walked like others.
  Part part = Part::kPatch;  // For kIgnored, only `present` and `left_out` are called.
};

// Looks at no more than `entries_max` entries. The rules of CaptureChanges() apply. The depth of a
// tree costs neither stack nor descriptors.
Status WalkUpper(WalkedLayers layers, const Repository* repository, int64_t entries_max,
                 const UpperVisitor& visitor);

}  // namespace change
