// SPDX-License-Identifier: Apache-2.0
// The ignore rules as the agent left them. Internal to change/.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "change/repository.h"
#include "change/rules/ignore_rules.h"

namespace change {

// Answers as `git status` does in the agent's tree: by its .gitignore files, which may differ from
// the checkout's, and the checkout's info/exclude. Rules that would not be part of a patch (the
// agent's own info/exclude or configuration) count for nothing.
class AgentIgnores {
 public:
  // `repository` is borrowed and may be null: then nothing is ignored.
  explicit AgentIgnores(const Repository* repository);
  AgentIgnores(const AgentIgnores&) = delete;
  AgentIgnores& operator=(const AgentIgnores&) = delete;

  // Takes the text of the .gitignore of `directory` ("" is the checkout's top) in the checkout and
  // in the agent's tree; nullopt if there is none. Call it for each directory of the agent's
  // tree before Ignores() for a path in it.
  void Enter(const std::string& directory, const std::optional<std::string>& before,
             const std::optional<std::string>& now);

  // Returns whether a .gitignore that applies to `path` differs from the checkout's.
  bool Changed(const std::string& path) const;
  // Return whether `path` is ignored, by the agent's rules and by those of the checkout on disk. A
  // trailing `/` says that it is a directory.
  bool Ignores(const std::string& path);
  bool IgnoredBefore(const std::string& path);

 private:
  struct Rules {
    std::string text;
    bool changed = false;
  };
  std::optional<std::string> Read(const std::string& directory) const;

  const Repository* repository_;
  std::map<std::string, Rules>
      rules_;  // By directory; only those whose .gitignore exists or changed.
  IgnoreRules before_;
  IgnoreRules now_;
};

}  // namespace change
