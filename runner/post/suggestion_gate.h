// SPDX-License-Identifier: Apache-2.0
// The gates over what a click would apply. A report is not believed about it: its findings say
// which file they mean, and its patch may never have passed a gate.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "change/gate.h"
#include "forge/branches.h"
#include "post/patch_files.h"

namespace post {

// Gives the rules of the configuration at the pull request's base.
using ReadGates = std::function<Result<change::GateLimits>()>;

class SuggestionGate {
 public:
  // `head_sha` is the commit that a click would change.
  SuggestionGate(forge::Branches& branches, std::string head_sha, ReadGates read_gates,
                 Deadline deadline);

  // Returns why a click may not put `lines` into `path`; empty if it may. A file that the forge
  // does not let us read is a reason, too, and so is that the time is over. Fails with kTemporary
  // alone.
  Result<std::string> WhyNot(const std::string& path, const std::string& lines);

 private:
  Status Read();
  Result<std::string> Judge(const std::string& path, const std::string& lines);

  forge::Branches& branches_;
  std::string head_sha_;
  ReadGates read_gates_;
  Deadline deadline_;
  change::GateLimits limits_;
  std::optional<CommitTree> tree_;  // The tree of the head, once it was read.
  std::string unread_;              // The reason why it cannot be read.
};

}  // namespace post
