// SPDX-License-Identifier: Apache-2.0
// Unpacked layers seen as one tree, as overlayfs would show them.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "image/unpack/layer_writer.h"

namespace image {

class LayerStack : public LowerLayers {
 public:
  // Directories, the uppermost first.
  explicit LayerStack(std::vector<Fd> layers) : layers_(std::move(layers)) {}

  // Fails with kInvalid for a path with a symbolic link, "." or ".." in it: the caller is not
  // trusted.
  Result<LowerEntry> Look(const std::string& path) override;

 private:
  std::vector<Fd> layers_;
};

}  // namespace image
