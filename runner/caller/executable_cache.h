// SPDX-License-Identifier: Apache-2.0
// The content that each executable had when it was first seen (trust on first use, as in
// OpenShell's NET/identity.rs). Contents are read in pieces: an agent chooses how much there is to
// read, and the same thread of the supervisor enforces limits and handles signals.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/openssl_owner.h"
#include "base/result.h"

namespace caller {

// One per run.
class ExecutableCache {
 public:
  // Returns whether `path` was seen with just this fingerprint; then nothing need be read.
  bool Knows(const std::string& path, const struct stat& st) const;

  // Returns why the executable at `path`, open as `file`, grants nothing; empty if it is what it
  // was when first seen; nullopt while its content is still to be read, by Proceed(). An executable
  // on a read-only mount, where no agent can change it, is known by its fingerprint and never read.
  std::optional<std::string> Check(const std::string& path, Fd file);

  // Reads at most kPieceBytes more. Returns true if no executable is being read any more: Check()
  // has an answer then about the one that was.
  bool Proceed();

  static constexpr size_t kPieceBytes = size_t{4} << 20;
  // The largest agent is about 250 MB.
  static constexpr int64_t kExecutableBytesMax = int64_t{512} << 20;
  // The bound on all executables of a run, each time one is read. An executable that is new after
  // that grants nothing.
  static constexpr int64_t kRunBytesMax = int64_t{4} << 30;

 private:
  struct Fingerprint {
    uint64_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };
  struct Seen {
    Fingerprint fingerprint;
    std::optional<std::array<uint8_t, 32>> sha256;  // nullopt if it was on a read-only mount.
  };
  struct Refused {
    Fingerprint fingerprint;
    std::string why;
  };
  struct Job {
    std::string path;
    Fd file;
    Fingerprint fingerprint;
    DigestContextOwner hash;
    int64_t read = 0;
  };
  static Fingerprint FingerprintOf(const struct stat& st);
  std::optional<std::string> Refuse(const std::string& path, const Fingerprint& fingerprint,
                                    std::string why);
  Status Begin(const std::string& path, Fd file, const struct stat& st);
  void Finish();

  std::map<std::string, Seen> seen_;
  std::map<std::string, Refused> refused_;  // The last content of each path that was.
  std::optional<Job> job_;
  int64_t run_bytes_ = 0;
};

}  // namespace caller
