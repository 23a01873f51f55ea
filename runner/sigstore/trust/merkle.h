// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sigstore {

// Returns SHA-256(0x00, body): a leaf of a log's tree. RFC 6962, 2.1.
std::string LeafHash(std::string_view body);

// Return the root of the tree over `leaves`, and the audit path of the leaf `index`, which must be
// one of them. RFC 6962, 2.1 and 2.1.1; the root of no leaves is the hash of nothing.
std::string TreeRoot(std::span<const std::string> leaves);
std::vector<std::string> AuditPath(std::span<const std::string> leaves, size_t index);

// Returns whether the audit path leads from `leaf`, the entry `index` of a tree of `size` entries,
// to `root`. RFC 6962, 2.1.1; false as well for an index outside the tree and for a path that is
// too long or too short. Hashes are 32 bytes.
bool ProvesInclusion(std::string_view leaf, uint64_t index, uint64_t size,
                     const std::vector<std::string>& path, std::string_view root);

}  // namespace sigstore
