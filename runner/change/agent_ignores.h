// SPDX-License-Identifier: Apache-2.0
// The ignore rules as the agent left them. Internal to change/.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "change/memory_repository.h"
#include "change/repository.h"

namespace change {

// Answers as `git status` does in the agent's tree: by its .gitignore files, which may differ from
// the checkout's, and the checkout's info/exclude. Rules that would not be part of a patch (the
// agent's own info/exclude or configuration) count for nothing. Rules that cost too much to ask
// (ignore_gate.h) ignore nothing, so that more is captured.
class AgentIgnores {
 public:
  // `repository` may be null: then nothing is ignored.
  explicit AgentIgnores(const Repository* repository);

  // Takes the text of the .gitignore of `directory` ("" is the checkout's top) in the checkout and
  // in the agent's tree; nullopt if there is none. Call it for each directory of the agent's
  // tree before Ignores() for a path in it.
  void Enter(const std::string& directory, const std::optional<std::string>& before,
             const std::optional<std::string>& now);

  // Returns whether a .gitignore that applies to `path` differs from the checkout's.
  bool Changed(const std::string& path) const;
  // A trailing `/` says that `path` is a directory. Answers as Repository::Ignores() does where
  // nothing differs.
  bool Ignores(const std::string& path);

 private:
  struct Rules {
    std::string text;
    bool changed = false;
  };
  bool Load(const std::string& directory);

  const Repository* repository_;
  std::map<std::string, Rules>
      rules_;  // By directory; only those whose .gitignore exists or changed.
  std::optional<MemoryRepository> matcher_;
  std::string loaded_;  // The directory whose rules the matcher has.
  bool loaded_open_ = false;
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace change
