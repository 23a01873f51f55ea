// SPDX-License-Identifier: Apache-2.0
// Internal to change/.
#pragma once

#include <string>
#include <vector>

#include "change/git_handle.h"

namespace change {

// The repositories of their own that a walk meets in a checkout, and what they track.
class Submodules {
 public:
  // `checkout` is a borrowed directory.
  explicit Submodules(int checkout);

  // Adds the submodule whose top is `path`. If its index cannot be read, it counts as tracking
  // everything.
  void Add(const std::string& path);
  // Returns whether `path` is the top of one.
  bool IsTop(const std::string& path) const;
  // Returns whether `path` lies in one.
  bool Holds(const std::string& path) const { return Innermost(path) != nullptr; }
  // Returns whether the innermost one that holds `path` tracks it, or anything beneath it.
  bool Tracks(const std::string& path) const;

 private:
  struct Submodule {
    std::string prefix;  // With a trailing `/`.
    GitIndex index;
  };
  const Submodule* Innermost(const std::string& path) const;

  int checkout_;
  std::vector<Submodule> found_;
};

}  // namespace change
