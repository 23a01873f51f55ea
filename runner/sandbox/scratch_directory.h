// SPDX-License-Identifier: Apache-2.0
// A directory on disk that belongs to one run: for writable layers and for copies of a checkout.
// Removed on destruction.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// The beginning of the name of each scratch directory.
inline constexpr char kScratchPrefix[] = "agentic-ci-scratch.";

// A directory on a disk of the host, one run's own: for the writable layers where memory file
// systems have no user attributes (Linux before 6.6), and for a copy of a checkout that cannot be a
// layer itself. Only its owner can enter it. Destroying it removes it.
class ScratchDirectory {
 public:
  enum class Use {
    kLayers,  // Overlayfs writes there: it needs user attributes and whiteouts.
    kFiles,
    kEntered,  // Files for an agent that is another user: it must be able to come there.
  };

  // Makes one in the first of `places` (absolute paths) whose file system serves `use`, found by
  // trying. Removes what killed runs of this user have left in the places it looks at. Fails with
  // kUnsupported, and the reason for each place, if none will do.
  static Result<ScratchDirectory> Make(const std::vector<std::string>& places, Use use);

  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  // Does what the destructor does, for a process that ends without it.
  void Remove() const;

  // Returns whether another run has one in the same place now, or may have.
  bool HasNeighbours() const;

  // Returns the absolute path, without links.
  std::string path() const { return place_ + "/" + name_; }
  int fd() const { return fd_.get(); }

 private:
  ScratchDirectory() = default;
  // Makes a new directory in `place_`, under its lock.
  Status MakeLocked();

  std::string place_;
  std::string name_;  // Empty if moved from.
  Fd parent_;
  Fd fd_;  // Holds the lock that says the directory is in use.
};

}  // namespace sandbox
