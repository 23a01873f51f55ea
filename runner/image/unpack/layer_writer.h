// SPDX-License-Identifier: Apache-2.0
// Writes the entries of one layer into a directory, in the form overlayfs takes as a lower layer.
// Nothing is ever reached through a name that was not resolved with this directory as its root.
//
// A layer is written as if it stood alone, which nearly every layer can: its builder put the
// directories above each file into it. Where one reaches below (a parent that is missing here, a
// hard link to a file of a lower layer), the lower layers are asked, and what this directory then
// holds is right above those layers only: `reached_below`.
#pragma once

#include <errno.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/unpack/layer_listing.h"
#include "image/unpack/layer_path.h"
#include "image/unpack/tar_reader.h"

namespace image {

// The entry that the layers below one layer show at a path.
struct LowerEntry {
  enum class Kind { kAbsent, kDirectory, kSymlink, kFile, kOther };
  Kind kind = Kind::kAbsent;
  mode_t mode = 0;
  timespec mtime{};
  std::string link;  // kSymlink.
  Fd file;           // kFile: open for reading.
};

class LowerLayers {
 public:
  virtual ~LowerLayers() = default;
  // Looks at `path`, which has no symbolic links in it, no "." and no "..".
  virtual Result<LowerEntry> Look(const std::string& path) = 0;
};

// A hole costs an image nothing, but reading the file costs its whole length.
inline constexpr int64_t kHoleBytesMax = int64_t{4} << 30;

// The bounds on all layers of one image together; shared between the processes that unpack them.
struct LayerBudget {
  std::atomic<int64_t> bytes_left;
  std::atomic<int64_t> entries_left;
  std::atomic<int64_t> holes_left = kHoleBytesMax;

  // Fails with kInvalid if less than that is left.
  Status TakeBytes(int64_t bytes);
  Status TakeEntry();
  Status TakeHoles(int64_t bytes);
};

// Returns the error of kIo for a system call that should have made something at `path`, with what
// to type if the disk is full.
Error WritingFailed(const std::string& path, int saved_errno = errno);

class LayerWriter {
 public:
  // `root` is an empty directory. `lower` is nothing for the lowest layer of an image. The process
  // has umask 0.
  LayerWriter(Fd root, LowerLayers* lower, LayerBudget& budget)
      : root_(std::move(root)), lower_(lower), budget_(budget) {}

  // Writes all entries. Fails with kInvalid for an image that must not be used; with kIo if the
  // disk is at fault.
  Status Write(TarReader& tar);

  int root() const { return root_.get(); }
  bool reached_below() const { return reached_below_; }
  const ContentHashes& content_hashes() const { return content_hashes_; }
  // Returns what was left out or changed, for a person: one line for each kind.
  std::vector<std::string> Warnings() const;

 private:
  enum class Missing { kMake, kFail };
  enum class Left { kDevice, kOwner, kXattr };

  // One directory on the way from the root.
  struct Step {
    std::string name;
    Fd fd;
    bool lower_hidden;  // True if nothing of the lower layers shows in it.
  };

  Status WriteEntry(TarReader& tar, const TarEntry& entry);
  Status WriteRoot(const TarEntry& entry);
  Status WriteDirectory(int parent, const std::string& leaf, const TarEntry& entry);
  Status WriteFile(int parent, const std::string& leaf, const TarEntry& entry, TarReader& tar);
  Result<uint64_t> WriteContent(int file, const TarEntry& entry, TarReader& tar);
  Status WriteSymlink(int parent, const std::string& leaf, const TarEntry& entry);
  Status WriteHardlink(int parent, const std::string& leaf, const TarEntry& entry);
  Status WriteFifo(int parent, const std::string& leaf, const TarEntry& entry);
  Status WriteWhiteout(int parent, const WhiteoutName& whiteout);
  Status FinishDirectories();

  // Returns the directory `path` as a process sees it whose root is this layer on top of the lower
  // ones. Missing directories are made as the lower layers have them; with kFail they must be
  // there. Borrowed, until the next call.
  Result<int> Parent(const std::string& path);
  Result<std::vector<Step>> Resolve(const std::string& path, Missing missing);
  Result<LowerEntry> LookBelow(const std::vector<Step>& steps, const std::string& name);
  Status Descend(std::vector<Step>& steps, const std::string& name, bool lower_hidden);
  Status MakeMissing(std::vector<Step>& steps, const std::string& name, const LowerEntry& lower,
                     bool over_whiteout);
  // Opens the directory in which the target of a hard link stands in this layer, copied up if it is
  // in a lower one; `st` is the target's.
  Result<Fd> LinkDirectory(const LayerPath& target, struct stat& st);
  Status CopyUp(int directory, const std::string& leaf, LowerEntry lower);
  // Returns the path of what stands in parent_ under `leaf`.
  std::string Real(const std::string& leaf) const;
  Status MakeOpaque(int directory, const std::string& path);
  // Removes what stands in `directory`, at `path`, for the lower layers alone.
  Status DropLower(int directory, const std::string& path);
  Result<bool> BeneathOpaque(int directory);

  // Takes away what stands at `leaf`, whole trees too.
  Status Clear(int parent, const std::string& leaf);
  void SetXattrs(int fd, const TarEntry& entry);
  void Note(Left kind, const std::string& path);

  struct Noted {
    int64_t count = 0;
    std::string first;
  };

  Fd root_;
  LowerLayers* lower_;
  LayerBudget& budget_;
  bool reached_below_ = false;
  bool parent_known_ = false;  // The last Parent() is still what its path leads to.
  std::string parent_path_;    // The path as asked for.
  std::string parent_real_;    // The path as it stands in this directory.
  Fd parent_;
  // Paths as they stand in this directory: what was made for an entry that needs it, and is not in
  // the layer itself. A whiteout hides it as it hides what it stands for.
  std::set<std::string> borrowed_;
  std::map<std::string, timespec> directory_times_;  // Set last: what is made inside changes them.
  ContentHash hash_;
  ContentHashes content_hashes_;
  std::map<Left, Noted> left_out_;
};

}  // namespace image
