// SPDX-License-Identifier: Apache-2.0
// Symbolic links that lead from or to a protected path: a change of the target counts as a change
// of the path. For the gates.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace change {

// A symbolic link at a protected path, such as `CLAUDE.md -> docs/guide.md`. What reads the
// protected path reads the target, so the target is protected like the path.
struct ProtectedLink {
  std::string path;  // The link, relative to the repository's top.
  // Its target, relative likewise: a file or directory, which need not exist, in the end or on the
  // way there.
  std::string target;
};

// Follows symbolic links of a tree, wherever that is, by their texts. All paths are relative to the
// tree's top.
class LinkWalk {
 public:
  // Returns the text of the link at a path, "" where no link is.
  using ReadText = std::function<Result<std::string>(const std::string& path)>;
  // Returns where the link at a path leads in the end, as with one that leaves the tree and comes
  // back; "" if it leads outside or nowhere.
  using Resolve = std::function<std::string(const std::string& path)>;

  explicit LinkWalk(ReadText read_text, Resolve resolve = nullptr)
      : read_text_(std::move(read_text)), resolve_(std::move(resolve)) {}

  // Walks the path of the link at `place` as the kernel would, and adds each place where the walk
  // goes on as one that `name` leads to. Where nothing is yet, the agent may make it; where a link
  // is, another one. What leads outside of the tree is left out. Fails as `read_text` fails.
  Status Follow(const std::string& name, const std::string& place);
  // Follows each of `paths` (of links, sorted) that lies in a directory which a link found so far
  // leads to, and is protected by the name that it has there. Fails with kInvalid beyond 100 000
  // of them.
  Status FollowDirectories(const std::vector<std::string>& paths);

  const std::vector<ProtectedLink>& links() const { return links_; }

 private:
  void Add(const std::string& name, const std::string& target);

  ReadText read_text_;
  Resolve resolve_;
  std::vector<ProtectedLink> links_;
  std::set<std::pair<std::string, std::string>> known_;
};

// Returns whether `path` is protected, or what is beneath it, as with `.github`: what is read
// through a link there is then read by a protected name.
bool StandsForProtected(const std::string& path);

// Returns the links at protected paths of the tree at `top` (absolute, without links), sorted, one
// for each place that it leads to: those of `tracked`, paths relative to `top` that git knows as
// links; and untracked ones at its top, in the directories there, and in protected directories up
// to eight levels deep, where at most 20 000 entries are looked at. A tracked link in a directory
// that another one leads to has the name that is read. What leads outside the tree is left out.
// Fails with kInvalid where LinkWalk::FollowDirectories does. Nothing else may change the tree.
Result<std::vector<ProtectedLink>> FindProtectedLinks(const std::string& top,
                                                      const std::vector<std::string>& tracked);

}  // namespace change
