// SPDX-License-Identifier: Apache-2.0
// Keeps for a day what programs and servers answered about package registries: Maven alone takes a
// second to say where it fetches from.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace run {

class AnswerCache {
 public:
  // Opens the cache in $XDG_CACHE_HOME/agentic-ci/registries, or else
  // ~/.cache/agentic-ci/registries. A place that cannot be made, or that others may write to, is
  // not used: then nothing is found or kept.
  static AnswerCache Open();
  // Opens it in `directory`, whose parents are made.
  static AnswerCache OpenIn(const std::string& directory);

  // Returns the answer to `question` when it was kept within a day, by this user, while `state` was
  // the same: all that the answer depends on.
  std::optional<std::string> Find(std::string_view question, std::string_view state) const;
  // Keeps `answer` in place of an earlier one. Best effort; of several at a time the last stays.
  void Keep(std::string_view question, std::string_view state, const std::string& answer) const;

 private:
  void RemoveOld() const;

  Fd directory_;  // Not valid: nothing is kept.
};

// Returns the state of a file, for `state`: another file, or another content, gives another text.
// Follows links.
std::string FileState(const std::string& path);

}  // namespace run
