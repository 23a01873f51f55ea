// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace codec {

// Returns the candidate that `name` was most likely meant to be: the one with the smallest edit
// distance (insertions, deletions, substitutions and swaps of neighbours, each counting one), the
// first among equals. Empty if none is near: a hint that is wrong is worse than none. Names beyond
// 64 bytes are near nothing.
std::string NearestName(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace codec
