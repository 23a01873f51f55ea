// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "change/sections/patch_section.h"

namespace change {

// Decodes and inflates the block: to the new bytes or, for a delta, to copies and inserted pieces.
// Fails with kInvalid if it is malformed or inflates to more than 1 GiB.
Result<std::string> InflateBlock(const BinaryBlock& block);

// Decodes the new bytes: base85, zlib and, for a delta, copies from `old_bytes` (git's pack delta).
// Fails with kInvalid if the block is malformed or inflates to more than 1 GiB.
Result<std::string> DecodeBinary(const BinaryBlock& block, std::string_view old_bytes);

// Bounds what decoding all binary data of a patch can take, by what it declares: a few bytes can
// inflate to a thousand times as many, and a delta copies. Only deltas are inflated for it, within
// the bound. Fails with kRefused above `bytes_max`, with kInvalid for what is malformed, and with
// kTemporary once the deadline has passed.
Status CheckDecodedSize(const std::vector<PatchSection>& sections, int64_t bytes_max,
                        Deadline deadline);

}  // namespace change
