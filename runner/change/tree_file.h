// SPDX-License-Identifier: Apache-2.0
// A file or symbolic link in a working tree as git sees it: a mode and bytes. Internal to change/.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace change {

// Returns 0100644 or 0100755 by the owner's execute bit, 0120000 for a link; 0 for everything else.
int GitMode(unsigned int stat_mode);

// The treatment of an opened file whose mode forbids reading: it fails, or is made readable first.
enum class Unreadable { kFail, kMakeReadable };

// Opens directory `path` beneath `root` ("" is root itself) for listing.
Result<Fd> OpenDirectory(int root, const std::string& path, Unreadable unreadable);

// One file of a tree, not yet read. Neither `path` nor anything above it is followed when it is a
// link.
class TreeFile {
 public:
  // Fails with kNotFound if there is nothing at `path` or something above it is not a directory. A
  // file that is neither regular nor a link has mode() 0 and no bytes.
  static Result<TreeFile> Open(int root, const std::string& path, Unreadable unreadable);

  // A file that lies in memory.
  TreeFile(int mode, std::string bytes);

  int mode() const { return mode_; }
  int64_t size() const { return size_; }
  const struct stat& facts() const { return facts_; }
  // Fails with kInvalid if there are more than `bytes_max`.
  Result<std::string> Read(int64_t bytes_max) const;
  // Compares without holding in memory what is not there already.
  Result<bool> SameBytes(const TreeFile& other) const;

 private:
  TreeFile() = default;
  Fd fd_;              // The descriptor of a regular file.
  std::string bytes_;  // Without one: the target of a symbolic link, or what lies in memory.
  int mode_ = 0;
  int64_t size_ = 0;
  struct stat facts_ {};
};

}  // namespace change
