// SPDX-License-Identifier: Apache-2.0
// Checks the names in a layer before any of them reaches the kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace image {

inline constexpr size_t kLayerDepthMax = 256;
inline constexpr size_t kLayerNameBytesMax = 255;

// Returns the error of kInvalid for an entry that no layer may have: "PATH: WHAT".
Error BadEntry(std::string_view path, std::string_view what);

// The place of an entry of a layer: a path without "", "." and ".." in it, split before its last
// component. Both are empty for the root itself.
struct LayerPath {
  std::string parent;  // "usr/bin", or "" for what stands in the root.
  std::string leaf;    // "git".

  bool is_root() const { return leaf.empty(); }
};

// Parses a path. Leading slashes are dropped: an absolute name is one below the layer's root. Fails
// with kInvalid for "..", wherever it leads, for a NUL, and over the bounds above.
Result<LayerPath> ParseLayerPath(std::string_view path);

// Parses what a hard link points to: like the above, but ".." is kept in `parent`, for the code
// that resolves it below the root. Fails with kInvalid if it cannot be a file.
Result<LayerPath> ParseLinkTarget(std::string_view path);

// Returns the components of a path: "a" and "b" of "a//b/". Empty components are dropped, all
// others kept.
std::vector<std::string_view> SplitPath(std::string_view path);

// The meanings that an entry's name may have besides naming it. OCI image-spec layer.md,
// "Whiteouts".
enum class Whiteout {
  kNone,
  kHides,    // ".wh.NAME": hides NAME of the layers below.
  kOpaque,   // ".wh..wh..opq": hides all that the layers below have in this directory.
  kIgnored,  // ".wh..wh.NAME" and what is beneath: aufs's own places.
};

struct WhiteoutName {
  Whiteout kind = Whiteout::kNone;
  std::string hidden;  // kHides: the name without its prefix.
};

// Fails with kInvalid for a whiteout of ".", ".." or nothing, and for one that is used as a
// directory.
Result<WhiteoutName> ParseWhiteout(const LayerPath& path);

}  // namespace image
