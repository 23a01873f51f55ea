// SPDX-License-Identifier: Apache-2.0
// The state of an unpacked layer as one digest: computed when it was unpacked, and again to
// check whether it is unchanged.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace image {

// The attribute, with the value "y", of a directory in which nothing of the layers below shows;
// overlayfs reads it in a user namespace.
inline constexpr char kOpaqueXattr[] = "user.overlay.opaque";

// XXH3 of a file's content: detects damage by a disk or a stray process, at the speed of memory.
// Nothing kept in the store protects against an attacker who may write to it.
class ContentHash {
 public:
  ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  ~ContentHash();

  void Update(std::string_view bytes);
  // Returns the hash of all bytes since the last call.
  uint64_t Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hashes the file that `fd` reads, from its beginning.
Result<uint64_t> HashContent(int fd);

// The hash of the content of every file that has some, by inode.
using ContentHashes = std::unordered_map<ino_t, uint64_t>;

struct LayerListing {
  std::string digest;  // SHA-256 over every path, mode, time, link, size and content.
  int64_t entries = 0;
  int64_t bytes = 0;  // The bytes of all files, as they look.
};

// Walks the directory `root`. Contents are read, unless their hashes are given.
Result<LayerListing> ListLayer(int root, const ContentHashes* known);

}  // namespace image
