// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/layer_path.h"

namespace image {
namespace {

constexpr std::string_view kPrefix = ".wh.";
constexpr std::string_view kMetaPrefix = ".wh..wh.";
constexpr std::string_view kOpaqueName = ".wh..wh..opq";

enum class Parents { kRefused, kKept };

Result<LayerPath> Parse(std::string_view path, Parents parents) {
  LayerPath parsed;
  size_t depth = 0;
  for (std::string_view name : SplitPath(path)) {
    if (name == ".") continue;
    if (name == ".." && parents == Parents::kRefused)
      return BadEntry(path, "leads out of the layer with \"..\"");
    if (name.find('\0') != std::string_view::npos) return BadEntry(path, "contains a NUL byte");
    if (name.size() > kLayerNameBytesMax) return BadEntry(path, "a name longer than 255 bytes");
    if (++depth > kLayerDepthMax) return BadEntry(path, "more than 256 directories deep");
    if (!parsed.leaf.empty()) {
      if (!parsed.parent.empty()) parsed.parent += '/';
      parsed.parent += parsed.leaf;
    }
    parsed.leaf = name;
  }
  return parsed;
}

}  // namespace

Error BadEntry(std::string_view path, std::string_view what) {
  return Invalid(std::string(path.substr(0, 256)) + ": " + std::string(what));
}

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    size_t slash = path.find('/');
    if (slash != 0) names.push_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return names;
}

Result<LayerPath> ParseLayerPath(std::string_view path) { return Parse(path, Parents::kRefused); }

Result<LayerPath> ParseLinkTarget(std::string_view path) {
  LayerPath parsed = TRY(Parse(path, Parents::kKept));
  if (parsed.is_root() || parsed.leaf == "..") return BadEntry(path, "a hard link to a directory");
  return parsed;
}

Result<WhiteoutName> ParseWhiteout(const LayerPath& path) {
  for (std::string_view name : SplitPath(path.parent)) {
    if (name.starts_with(kMetaPrefix)) return WhiteoutName{Whiteout::kIgnored, ""};
    if (name.starts_with(kPrefix)) return BadEntry(path.parent, "a whiteout used as a directory");
  }
  if (!path.leaf.starts_with(kPrefix)) return WhiteoutName{};
  if (path.leaf == kOpaqueName) return WhiteoutName{Whiteout::kOpaque, ""};
  if (path.leaf.starts_with(kMetaPrefix)) return WhiteoutName{Whiteout::kIgnored, ""};
  std::string hidden = path.leaf.substr(kPrefix.size());
  if (hidden.empty() || hidden == "." || hidden == "..") {
    return BadEntry(path.leaf, "a whiteout without a name");
  }
  return WhiteoutName{Whiteout::kHides, std::move(hidden)};
}

}  // namespace image
