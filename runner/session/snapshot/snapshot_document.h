// SPDX-License-Identifier: Apache-2.0
// The documents of a snapshot: an image's configuration and manifest, and the index of a layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/client.h"

namespace session {

inline constexpr char kSnapshotLayerType[] = "application/vnd.oci.image.layer.v1.tar+zstd";

// Fails with kInvalid if the shell's state is too large for one.
Result<std::string> RenderSnapshotConfig(const TakenSnapshot& snapshot, const std::string& diff_id);
// The facts but for the counts, the diff_id and the shell's state. Parsing fails with kInvalid for
// another image.
struct SnapshotConfig {
  RestoreRequest request;
  std::string state;
};
Result<SnapshotConfig> ParseSnapshotConfig(std::string_view text);

struct DocumentOf {
  std::string digest;
  int64_t bytes = 0;
};
std::string RenderSnapshotManifest(const DocumentOf& config, const DocumentOf& layer);

// Returns `index` (a new one if empty) with `manifest` in it, as `tag` if that is not empty; no
// other manifest keeps that tag. Fails with kInvalid if `index` is not an index.
Result<std::string> AddToIndex(std::string_view index, const DocumentOf& manifest,
                               const std::string& tag);

struct IndexEntry {
  std::string digest;
  std::string tag;  // Empty if it has none.
};
// Fails with kInvalid if `index` is not an index.
Result<std::vector<IndexEntry>> EntriesOfIndex(std::string_view index);

// Returns `index` without the manifest that has this tag, or without every manifest of this digest
// and what is named after it, such as its signatures; nothing if there is no such manifest.
Result<std::optional<std::string>> RemoveFromIndex(std::string_view index,
                                                   const std::string& tag_or_digest);

}  // namespace session
