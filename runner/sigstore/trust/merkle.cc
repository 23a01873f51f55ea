// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/merkle.h"

#include <bit>

#include "sigstore/trust/public_key.h"

namespace sigstore {
namespace {

std::string NodeHash(std::string_view left, std::string_view right) {
  std::string node(1, '\x01');
  node += left;
  node += right;
  return Digest(Hash::kSha256, node);
}

// The size of the left one of the two trees that a tree of `size` leaves consists of, two at least.
size_t LeftSize(size_t size) { return std::bit_floor(size - 1); }

}  // namespace

std::string TreeRoot(std::span<const std::string> leaves) {
  if (leaves.empty()) return Digest(Hash::kSha256, "");
  if (leaves.size() == 1) return leaves.front();
  const size_t left = LeftSize(leaves.size());
  return NodeHash(TreeRoot(leaves.first(left)), TreeRoot(leaves.subspan(left)));
}

std::vector<std::string> AuditPath(std::span<const std::string> leaves, size_t index) {
  if (leaves.size() == 1) return {};
  const size_t left = LeftSize(leaves.size());
  const bool is_left = index < left;
  std::vector<std::string> path = AuditPath(is_left ? leaves.first(left) : leaves.subspan(left),
                                            is_left ? index : index - left);
  path.push_back(TreeRoot(is_left ? leaves.subspan(left) : leaves.first(left)));
  return path;
}

std::string LeafHash(std::string_view body) {
  std::string leaf(1, '\0');
  leaf += body;
  return Digest(Hash::kSha256, leaf);
}

bool ProvesInclusion(std::string_view leaf, uint64_t index, uint64_t size,
                     const std::vector<std::string>& path, std::string_view root) {
  if (index >= size) return false;
  // Below `inner` levels the leaf has neighbours on both sides; above, it is on the tree's right
  // border, where only the levels count on which something stands to its left.
  auto inner = static_cast<size_t>(std::bit_width(index ^ (size - 1)));
  uint64_t above = inner == 64 ? 0 : index >> inner;
  if (path.size() != inner + static_cast<size_t>(std::popcount(above))) return false;
  std::string hash(leaf);
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i].size() != 32) return false;
    bool right = i >= inner || (index >> i & 1) != 0;
    hash = right ? NodeHash(path[i], hash) : NodeHash(hash, path[i]);
  }
  return hash == root;
}

}  // namespace sigstore
