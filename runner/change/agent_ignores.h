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

  // The .gitignore of `directory` ("" is the checkout) in the checkout and now; nothing where there
  // is none. Told of each directory of the agent's tree before a path in it is asked about.
  void Enter(const std::string& directory, const std::optional<std::string>& before,
             const std::optional<std::string>& now);

  // Whether any rule that may cover `path` differs from the checkout's.
  bool Changed(const std::string& path) const;
  // A trailing `/` says that `path` is a directory. As Repository::Ignores() where nothing differs.
  bool Ignores(const std::string& path);

 private:
  struct Rules {
    std::string text;
    bool changed = false;
  };
  bool Load(const std::string& directory);

  const Repository* repository_;
  std::map<std::string, Rules> rules_;  // Of directories that have any, or had other ones.
  std::optional<MemoryRepository> matcher_;
  std::string loaded_;  // The directory whose rules the matcher has.
  bool loaded_open_ = false;
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace change
