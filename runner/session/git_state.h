// SPDX-License-Identifier: Apache-2.0
// The part of git's state that a sandbox keeps in its own layer of the checkout: the index, and
// what the sandbox committed. It hides the checkout's, which changes when its user commits.
#pragma once

#include <string>

#include "base/result.h"
#include "sandbox/sandbox.h"

namespace session {

class GitState {
 public:
  // Makes the sandbox's state the checkout's: its own index, HEAD and refs are replaced or removed,
  // with the agent's rights; objects stay. Of the sandbox's other files in `.git`, those that the
  // checkout does not have are removed. No other file of the checkout is copied: it may hold
  // credentials. Nothing inside may run meanwhile. Does nothing in tier `landlock`, where git is a
  // copy that follows nothing, nor where the sandbox made a repository of its own. `sandbox` is
  // borrowed for the call.
  Status Follow(const sandbox::Sandbox& sandbox);

  // Returns whether Follow() is due again: the checkout's state has changed since, and the
  // sandbox's has not but for its index. What the sandbox committed since is not dropped so.
  bool IsStale(const sandbox::Sandbox& sandbox) const;

 private:
  bool follows_ = false;
  std::string outside_;  // What identifies the checkout's state when it was followed last,
  std::string inside_;   // and the sandbox's, its index left out.
};

}  // namespace session
