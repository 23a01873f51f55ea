// SPDX-License-Identifier: Apache-2.0
// A repository of a registry, and its mirrors: distribution-spec 1.1.
#pragma once

#include <memory>

#include "image/source/source.h"

namespace image {

// Opens a registry. Fails with kUsage for malformed mirrors or insecure registries. Mirrors are
// asked first; what a mirror lacks, refuses or fails to give, and an empty list of referrers, is
// asked of the registry itself.
Result<std::unique_ptr<Source>> OpenRegistry(const Reference& reference,
                                             const SourceOptions& options);

// Returns the target of rel="next" in a Link header (RFC 8288), or "".
std::string NextPage(std::string_view link);

}  // namespace image
