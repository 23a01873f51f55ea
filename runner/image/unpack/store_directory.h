// SPDX-License-Identifier: Apache-2.0
// The store on disk, which many runs use at once and any of them may be killed at any moment:
//
//   layers/ID/record, layers/ID/root   whole layers. A run that uses one holds a shared flock on
//   its
//                                      directory; its mtime is when it was used last.
//   staging/NAME/...                   being made, or being removed. Locked alike by who makes it.
//   locks/CHAIN                        held by the one run that unpacks this layer, so that others
//                                      wait for it instead of doing the same.
//
// A lock ends with its process, so whatever lies in staging/ unlocked is garbage. ID is
// "diff-HEX" for a layer that can stand on any other, "chain-HEX" for one that cannot.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "image/unpack/layer_record.h"

namespace image {

// A layer that is there, and stays while this lives.
struct StoredLayer {
  std::string path;  // The absolute path of its root.
  Fd lock;
  Fd root;
  LayerRecord record;
};

// A new, empty directory that will be a layer; removed, unless it was published.
struct StagedLayer {
  StagedLayer() = default;
  StagedLayer(StagedLayer&&) = default;
  StagedLayer& operator=(StagedLayer&&) = default;
  ~StagedLayer();

  int parent = -1;  // staging/, borrowed.
  std::string name;
  Fd lock;  // The directory itself.
  Fd root;
};

// The right to unpack one layer.
struct ChainLock {
  ChainLock() = default;
  ChainLock(ChainLock&&) = default;
  ChainLock& operator=(ChainLock&&) = default;
  ~ChainLock();

  int parent = -1;  // locks/, borrowed.
  std::string name;
  Fd fd;
};

class StoreDirectory {
 public:
  // Opens the directory. `owner` and `group` get the roots of new layers.
  static Result<StoreDirectory> Open(const std::string& path, uid_t owner, gid_t group);

  // Return the owner and group of the files of layers.
  uid_t owner() const { return owner_; }
  gid_t group() const { return group_; }

  // Returns nullopt if it is not there, or no longer what it was; then it is removed.
  Result<std::optional<StoredLayer>> Find(const std::string& id);
  Result<StagedLayer> Stage();
  // Publishes with one rename. Who comes second takes what the first one made.
  Result<StoredLayer> Publish(StagedLayer staged, const std::string& id, const LayerRecord& record);

  // Waits until no other process has it; fails with kTemporary if `deadline` passes, or `given_up`
  // says so.
  Result<ChainLock> LockChain(const std::string& chain, Deadline deadline,
                              const std::function<bool()>& given_up);

  // Returns the ids of all layers that are there.
  Result<std::vector<std::string>> Ids();
  // Reads a layer again, and returns what is wrong with it, or "".
  Result<std::string> Examine(const std::string& id);
  struct Use {
    int64_t bytes = 0;
    timespec last{};
  };
  Result<Use> LastUse(const std::string& id);
  // Takes a layer out of sight at once. Runs that use it go on; the last of them, or the next
  // sweep, removes it.
  Status Retire(const std::string& id);
  // Returns false if a run uses it.
  Result<bool> RemoveUnused(const std::string& id);
  // Removes what killed runs left.
  Status Sweep();

 private:
  Result<std::optional<StoredLayer>> OpenLayer(const std::string& id);
  Status WriteRecord(int layer, const LayerRecord& record);

  std::string path_;
  uid_t owner_ = 0;
  gid_t group_ = 0;
  Fd layers_;
  Fd staging_;
  Fd locks_;
};

}  // namespace image
