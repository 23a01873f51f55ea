// SPDX-License-Identifier: Apache-2.0
// An OCI image layout (image-spec 1.1, image-layout.md): a directory with `index.json` and blobs
// under their digests. For use without a network; its bytes are trusted no more than a registry's.
#pragma once

#include <memory>
#include <string>

#include "image/source/source.h"

namespace image {

// Opens a layout. Fails with kNotFound if there is no such directory, with kInvalid if it is not a
// layout. Tags are the entries' `org.opencontainers.image.ref.name`; without a tag ("latest"
// neither) the index must have a single image. Referrers are the entries with that subject, and
// those of the fallback tag.
Result<std::unique_ptr<Source>> OpenLayout(const std::string& directory,
                                           const SourceOptions& options);

}  // namespace image
