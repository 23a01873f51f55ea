// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "image/source/reference.h"
#include "image/source/source.h"

namespace image {

// Opens what `reference` names; asks nothing of a registry yet. Fails with kInvalid for malformed
// options and for a layout or archive that is not one, with kNotFound if there is no such directory
// or file.
Result<std::unique_ptr<Source>> OpenSource(const Reference& reference,
                                           const SourceOptions& options);

}  // namespace image
