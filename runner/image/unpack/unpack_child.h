// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.h"
#include "image/unpack/layer_writer.h"

namespace image {

// All that the process which unpacks one layer holds.
struct UnpackResources {
  Fd packed;     // The layer as it comes: gzip, zstd or a plain tar.
  Fd reports;    // unpack_message.h.
  Fd directory;  // Empty; becomes the process's root, and the layer.
  bool lowest = false;
  int ratio_max = 0;
  LayerBudget* budget = nullptr;  // Shared with the others' processes.
};

// The life of that process: waits for a first message, which says that its ids are mapped, confines
// itself, unpacks, reports.
[[noreturn]] void RunUnpacking(UnpackResources resources);

}  // namespace image
