// SPDX-License-Identifier: Apache-2.0
// Renders what is watched as lines, for any reader: no terminal is needed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "session/protocol.h"
#include "watch/watch.h"

namespace watch {

// Renders a limit: "memory: 12MiB of 4GiB".
std::string RenderLimit(const session::LimitUse& use);
// Renders a change: "created a/b", "renamed a to b"; at most one line, harmless.
std::string RenderChange(const session::FileChange& change);

class Lines {
 public:
  // Renders what is new in `look`, as lines of harmless text: each different request once, each
  // change of a file, and limits when another part of them is used.
  std::string Render(const Look& look);

 private:
  std::string RenderLimits(const session::SandboxState& state);

  std::set<std::string> told_;
  std::map<std::string, int64_t> percent_;  // The percentage of each limit that was last reported.
};

}  // namespace watch
