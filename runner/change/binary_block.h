// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "change/patch_section.h"

namespace change {

// Decodes and inflates the block: to the new bytes or, for a delta, to copies and inserted pieces.
// Fails with kInvalid if it is malformed or inflates to more than 1 GiB. Internal to change/.
Result<std::string> InflateBlock(const BinaryBlock& block);

// Decodes the new bytes: base85, zlib and, for a delta, copies from `old_bytes` (git's pack delta).
// Fails with kInvalid if the block is malformed or inflates to more than 1 GiB. Internal to
// change/; use ApplySection().
Result<std::string> DecodeBinary(const BinaryBlock& block, std::string_view old_bytes);

}  // namespace change
