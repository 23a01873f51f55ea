// SPDX-License-Identifier: Apache-2.0
// Unpacked layers on disk, each under the digest of what it was unpacked from, shared by every run
// of a user at once. Complete or absent: a layer gets its name by one rename, after its digest and
// diff id were verified.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "image/source/manifest.h"
#include "image/source/source.h"

namespace image {

// The layers of one image, ready to be the lower layers of an overlay, and kept from being pruned
// while this lives (a shared flock). No directory is listed twice, and none that another one hides
// whole: overlayfs would refuse the first and not honour the second.
struct UnpackedImage {
  std::vector<std::string> layers;    // Directories, the uppermost first, as overlayfs lists them.
  std::vector<std::string> warnings;  // Warnings about what was left out: devices, squashed owners.
  bool fresh = false;  // True if a layer of it was unpacked now, and not found in the store.
  // The owner of every file of every layer on this disk: the caller, who maps one id into the
  // sandbox; kRootLayersId when the caller is root, who must id-map the layers for anybody else.
  uid_t owner_uid = 0;
  gid_t owner_gid = 0;
  std::vector<Fd> locks;
};

// Root runs the agent, and unpacks, as a user of no account: the uid that sandbox/plan.cc maps
// root's checkout to.
inline constexpr uid_t kRootLayersId = 1'879'048'192;

struct UnpackLimits {
  int64_t bytes_max = int64_t{32} << 30;  // The bytes of an image, unpacked.
  int64_t entries_max = 2'000'000;
  int ratio_max = 200;  // The ratio of unpacked to packed, after the first 64 MiB.
};

struct PruneResult {
  int64_t bytes_freed = 0;
  int64_t bytes_left = 0;
  int layers_freed = 0;
};

struct StoreCheck {
  int layers = 0;
  std::vector<std::string> damaged;  // "ID: how", one for each.
};

class StoreDirectory;

class Store {
 public:
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Opens a store. `directory` is made if it is not there (0700). Fails with kRefused if it belongs
  // to another user, or others may write to it.
  static Result<Store> Open(const std::string& directory);

  // Unpacks what is not there yet, from `source`, layers in parallel, each in a confined child of
  // its own. `manifest` and `config` were verified by the caller, whose process has one thread.
  // Fails with kInvalid if the image must not be used, with kUnsupported if this host gives no user
  // namespaces.
  Result<UnpackedImage> Unpack(Source& source, const Manifest& manifest, const ImageConfig& config,
                               const UnpackLimits& limits, Deadline deadline);

  // Removes what was used longest ago, and is not in use, until at most `bytes_max` are left; and
  // whatever killed runs left half-made.
  Result<PruneResult> Prune(int64_t bytes_max);

  // Reads everything again and reports what differs from what was unpacked. With `remove`, that is
  // removed: the next run that needs it unpacks it again, and runs that use it continue.
  Result<StoreCheck> Check(bool remove);

 private:
  explicit Store(std::unique_ptr<StoreDirectory> directory);

  std::unique_ptr<StoreDirectory> directory_;
};

// Returns the directory where layers are kept by default: $AGENTIC_CI_STORE, else
// $XDG_CACHE_HOME/agentic-ci/images, else ~/.cache/agentic-ci/images; without a home,
// /var/tmp/agentic-ci-images-UID.
std::string DefaultStore();

}  // namespace image
