// SPDX-License-Identifier: Apache-2.0
// Unpacks a tree of files from a stream (`get`, `restore`), never through a link and within
// limits.
#pragma once

#include <time.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/unpack/tar_reader.h"

namespace session {

struct ReceiveLimits {
  int64_t bytes_max = 0;
  int64_t entries_max = 2'000'000;
};

struct Received {
  int64_t files = 0;
  int64_t bytes = 0;
};

// The place where an entry of an archive is to be written: beneath an open directory that the
// receiver chose.
struct Spot {
  int directory = -1;
  std::string path;  // Relative.
};

// Writes the entries of an archive that may be hostile. Nothing is reached through a symbolic link,
// "..", or a name that the route does not lead to; set-user-ID bits are not taken over, nor owners.
class TreeReceiver {
 public:
  enum class Kind {
    kFiles,  // Replaces what is there, files by files; directories are merged.
    kTree,   // All of a directory as `tar -c .` packs it: hard links and pipes, too.
    kLayer,  // A layer over what is there: whiteouts remove, and anything replaces anything.
  };
  // Returns nullopt if the archive must not hold that path.
  using Route = std::function<std::optional<Spot>(const std::string& path)>;

  TreeReceiver(Kind kind, ReceiveLimits limits, Route route)
      : kind_(kind), limits_(limits), route_(std::move(route)) {}

  // Receives the whole archive, in a process with one thread. Fails with kInvalid if the archive is
  // not to be trusted, or larger than the limits; with kUnsupported if a kTree has more bytes than
  // those. Files that were written whole before an error stay. A kFiles obeys the process's umask,
  // and writes a file without a name until it is whole, or where the disk has no such files under
  // another name (".part" behind it), which stays if the process is killed.
  Status Receive(image::TarReader& tar);

  const Received& received() const { return received_; }

 private:
  struct Directory {
    Spot spot;
    mode_t mode = 0;
    timespec mtime{};
  };

  Result<Spot> Find(const std::string& path) const;
  // Returns the open directory of `spot`, borrowed until the next call; puts its leaf into `leaf`.
  Result<int> Parent(const Spot& spot, std::string* leaf);
  Status Write(image::TarReader& tar, image::TarEntry& entry);
  Status WriteDirectory(const Spot& spot, int parent, const std::string& leaf,
                        const image::TarEntry& entry);
  Status WriteFile(int parent, const std::string& leaf, const image::TarEntry& entry,
                   image::TarReader& tar);
  Result<std::string> MakePart(const std::string& leaf, const image::TarEntry& entry,
                               const std::function<bool(const std::string& name)>& make) const;
  Result<Fd> MakeFile(int parent, const std::string& leaf, const image::TarEntry& entry) const;
  Status FillFile(int file, const image::TarEntry& entry, image::TarReader& tar) const;
  Status WriteLink(int parent, const std::string& leaf, const image::TarEntry& entry);
  Status CheckReplaceable(int parent, const std::string& leaf) const;
  Status Remove(int parent, const std::string& leaf) const;
  Status Clear(int parent, const std::string& path) const;
  Status FinishDirectories();
  mode_t ModeOf(const image::TarEntry& entry) const;

  Kind kind_;
  ReceiveLimits limits_;
  Route route_;
  int parent_of_ = -1;  // The last Parent().
  std::string parent_path_;
  Fd parent_;
  std::vector<Directory> directories_;  // Their modes and times are set last.
  Received received_;
  int64_t entries_ = 0;
  mode_t mask_ = 0;  // What the modes of a kFiles are without.
};

}  // namespace session
