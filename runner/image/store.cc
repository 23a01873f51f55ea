// SPDX-License-Identifier: Apache-2.0
#include "image/store.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/sys.h"
#include "image/unpack.h"
#include "image/unpack/store_directory.h"

namespace image {

Store::Store(std::unique_ptr<StoreDirectory> directory) : directory_(std::move(directory)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::Open(const std::string& directory) {
  bool root = ::geteuid() == 0;
  StoreDirectory opened = TRY(StoreDirectory::Open(directory, root ? kRootLayersId : ::geteuid(),
                                                   root ? kRootLayersId : ::getegid()));
  return Store(std::make_unique<StoreDirectory>(std::move(opened)));
}

Result<UnpackedImage> Store::Unpack(Source& source, const Manifest& manifest,
                                    const ImageConfig& config, const UnpackLimits& limits,
                                    Deadline deadline) {
  return UnpackImage(*directory_, source, manifest, config, limits, deadline);
}

Result<PruneResult> Store::Prune(int64_t bytes_max) {
  TRY(directory_->Sweep());
  struct Layer {
    std::string id;
    StoreDirectory::Use use;
  };
  std::vector<Layer> layers;
  PruneResult result;
  std::vector<std::string> ids = TRY(directory_->Ids());
  for (const std::string& id : ids) {
    Result<StoreDirectory::Use> use = directory_->LastUse(id);
    if (!use.ok()) continue;  // Another run removed it.
    result.bytes_left += use.value().bytes;
    layers.push_back({id, use.value()});
  }
  std::sort(layers.begin(), layers.end(), [](const Layer& a, const Layer& b) {
    return std::pair(a.use.last.tv_sec, a.use.last.tv_nsec) <
           std::pair(b.use.last.tv_sec, b.use.last.tv_nsec);
  });
  for (const Layer& layer : layers) {
    // With nothing to keep, layers of empty files go too.
    if (bytes_max > 0 && result.bytes_left <= bytes_max) break;
    bool removed = TRY(directory_->RemoveUnused(layer.id));
    if (!removed) continue;
    result.bytes_left -= layer.use.bytes;
    result.bytes_freed += layer.use.bytes;
    ++result.layers_freed;
  }
  return result;
}

Result<StoreCheck> Store::Check(bool remove) {
  StoreCheck check;
  std::vector<std::string> ids = TRY(directory_->Ids());
  for (const std::string& id : ids) {
    ++check.layers;
    std::string how = TRY(directory_->Examine(id));
    if (how.empty()) continue;
    check.damaged.push_back(id + ": " + how);
    if (remove) TRY(directory_->Retire(id));
  }
  return check;
}

std::string DefaultStore() {
  if (std::optional<std::string> store = sys::Environment("AGENTIC_CI_STORE")) return *store;
  std::optional<std::string> cache = sys::Environment("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache + "/agentic-ci/images";
  if (std::optional<std::string> home = sys::Environment("HOME")) {
    return *home + "/.cache/agentic-ci/images";
  }
  // /var/tmp is sticky: another user cannot rename what is directly below it.
  return "/var/tmp/agentic-ci-images-" + std::to_string(::geteuid());
}

}  // namespace image
