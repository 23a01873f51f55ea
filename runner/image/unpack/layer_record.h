// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace image {

// The facts about a layer in the store; kept beside it.
struct LayerRecord {
  // The kernel's boot in which the layer was written, or last read whole and found right. Nothing
  // is synchronised to disk when a layer is unpacked: that would cost more than unpacking, and on a
  // machine that lives for one run it is for nothing. So what a machine that lost power left behind
  // is read once before it is used again.
  std::string boot;
  std::string listing_digest;
  int64_t entries = 0;
  int64_t bytes = 0;
  bool hides_below = false;
  std::vector<std::string> warnings;
};

// Returns `text` with names from an image in it, fit for a terminal and for a line of a file:
// whatever is not printable ASCII becomes "?".
std::string Printable(std::string text);

std::string RenderRecord(const LayerRecord& record);
Result<LayerRecord> ParseRecord(std::string_view text);

// Returns the id of this boot of the kernel; "" if it cannot be read.
std::string BootId();

}  // namespace image
