// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/store.h"
#include "image/unpack/store_directory.h"

namespace image {

// Does the work of Store::Unpack.
Result<UnpackedImage> UnpackImage(StoreDirectory& directory, Source& source,
                                  const Manifest& manifest, const ImageConfig& config,
                                  const UnpackLimits& limits, Deadline deadline);

}  // namespace image
