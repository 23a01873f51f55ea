// SPDX-License-Identifier: Apache-2.0
// Archives as written by `docker save`, `podman save` and `skopeo copy … docker-archive:FILE`: a
// tar with manifest.json, configurations and layers. It has no manifests with digests, so one is
// generated with computed digests; it cannot be signed.
#pragma once

#include <memory>

#include "image/source/source.h"

namespace image {

// Opens an archive. Reads only the heads of the entries; nothing is unpacked. Fails with kNotFound
// if there is no such file, or no image of that name in it, with kInvalid if it is not such an
// archive.
Result<std::unique_ptr<Source>> OpenArchive(const Reference& reference,
                                            const SourceOptions& options);

}  // namespace image
