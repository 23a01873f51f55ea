// SPDX-License-Identifier: Apache-2.0
// Finds in the pull request's head the lines that an agent saw in another commit, such as the merge
// with the base branch that a CI checks out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "forge/diff_file.h"
#include "report/record.h"

namespace post {

// Lines of the head's file, from 1.
struct HeadLines {
  int line = 0;
  int end_line = 0;
  bool lost = false;  // The finding's lines may be elsewhere, or gone: then both are 0.
};

class LineFollower {
 public:
  // Borrows the difference between the base and the head.
  explicit LineFollower(const std::vector<forge::DiffFile>& diff) : diff_(diff) {}

  // Returns the lines of `finding` in the head's file at `path` (from the repository's top). They
  // are where the agent saw them if it saw the head, or the same file; otherwise where the
  // difference shows the same text, if that is one place. A finding that the difference does not
  // show has no lines beside which it could stand, and is left as it is.
  HeadLines Find(const report::Finding& finding, const std::string& path);

 private:
  // First lines by report::LinesDigest() of as many lines; 0 if there are several.
  using Starts = std::map<std::string, int>;
  const Starts& StartsOf(const forge::DiffFile& file, size_t count);

  const std::vector<forge::DiffFile>& diff_;
  std::map<std::pair<const forge::DiffFile*, size_t>, Starts> starts_;
};

}  // namespace post
