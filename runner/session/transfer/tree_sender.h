// SPDX-License-Identifier: Apache-2.0
// Packs a tree of files into a stream (`put`, `get`, `snapshot`), following no link.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "session/transfer/tar_writer.h"

namespace session {

struct Sent {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t left_out = 0;  // Sockets, devices, unreadable files, and what a layer cannot express.
  std::string first_left_out;  // Its path; of kFiles with the reason: "PATH: why".
};

// Sends files and directories as they are found, following no link. Files that change meanwhile are
// sent as they were read; one that becomes shorter is an error.
class TreeSender {
 public:
  enum class Kind {
    kFiles,  // Files, directories and symbolic links.
    kLayer,  // The upper directory of an overlay as an OCI layer: also whiteouts, pipes, `user.`
             // attributes, and hard links within one Send().
  };

  TreeSender(TarWriter& tar, Kind kind) : tar_(tar), kind_(kind) {}

  // Sends `opened`, a file or directory open for reading, as `path`. Errors and what was left out
  // call it `shown`, or `path` if that is empty. What may not be read below it is left out.
  Status Send(const Fd& opened, const std::string& path, const std::string& shown = {});
  // Bounds the files' sizes together, holes included: who receives them counts so too. Send() fails
  // with kUnsupported at the file that exceeds it, before that is read.
  void Limit(int64_t bytes_max) { bytes_max_ = bytes_max; }
  // Adds a path of the archive that is not sent.
  void Skip(std::string path) { skipped_.insert(std::move(path)); }

  const Sent& sent() const { return sent_; }

 private:
  Status SendDirectory(int directory, const std::string& path, int depth);
  Status SendEntry(int directory, const std::string& name, const std::string& path, int depth);
  Result<size_t> ReadFirst(int file);
  Status SendFile(int file, const struct stat& st, image::TarEntry entry);
  void LeaveOut(const std::string& path, const std::string& why);
  // Leaves `path` out if `error` is the lack of a permission; else returns it.
  Status LeaveOutUnreadable(const std::string& path, const Error& error);
  std::string Shown(const std::string& path) const;
  image::TarEntry EntryOf(const struct stat& st, const std::string& path, int fd) const;

  TarWriter& tar_;
  Kind kind_;
  int64_t bytes_max_ = std::numeric_limits<int64_t>::max();
  std::set<std::string> skipped_;
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;  // Files with more than one name.
  std::string buffer_;
  std::string root_;   // What Send() sends, in the archive,
  std::string shown_;  // and for people.
  Sent sent_;
};

}  // namespace session
