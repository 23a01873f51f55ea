// SPDX-License-Identifier: Apache-2.0
// Messages between the process that unpacks a layer and the one that feeds it. The former is not
// trusted: its messages are parsed as strictly as the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "image/unpack/layer_writer.h"

namespace image {

inline constexpr size_t kUnpackMessageBytesMax = 64 << 10;

// A layer is written, whole.
struct UnpackedLayer {
  std::string diff_id;         // "sha256:..." of all that the layer unpacked to.
  std::string listing_digest;  // LayerListing::digest.
  int64_t entries = 0;
  int64_t bytes = 0;
  bool reached_below = false;
  bool hides_below = false;  // Its root is opaque: no layer below shows.
  std::vector<std::string> warnings;
};

// The question what the tree below shows at `path`.
struct LookBelow {
  std::string path;
};

using UnpackReport = std::variant<UnpackedLayer, LookBelow, Error>;

std::string RenderReport(const UnpackReport& report);
Result<UnpackReport> ParseReport(std::string_view message);

// Renders the answer to LookBelow; an open file travels beside it.
std::string RenderAnswer(const LowerEntry& entry);
Result<LowerEntry> ParseAnswer(std::string_view message);

}  // namespace image
