// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace gateway {

// Which content every executable had when it was first seen (trust on first use, as OpenShell's
// NET/identity.rs), and fingerprints that make a second look one stat(2). One per run.
class ExecutableCache {
 public:
  // Was `path` seen with just this fingerprint? Then nothing need be read.
  bool Knows(const std::string& path, const struct stat& st) const;
  // Reads the executable open at `fd` when its fingerprint is new. False when `path` was seen
  // before with other content. An Error when it cannot be read or is larger than 2 GiB.
  Result<bool> Unchanged(const std::string& path, int fd);

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
    std::array<uint8_t, 32> sha256{};
  };
  static Fingerprint FingerprintOf(const struct stat& st);

  std::map<std::string, Seen> seen_;
};

}  // namespace gateway
