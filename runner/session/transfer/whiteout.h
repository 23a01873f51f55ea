// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace session {

// image-spec layer.md: an empty file whose name says which other name of the layers below is gone,
// and the one that says so of everything in its directory.
inline constexpr std::string_view kWhiteoutPrefix = ".wh.";
inline constexpr std::string_view kOpaqueName = ".wh..wh..opq";

}  // namespace session
