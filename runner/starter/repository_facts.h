// SPDX-License-Identifier: Apache-2.0
// Finds what a repository looks like from outside: enough to write its first configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace starter {

enum class Forge { kGitHub, kGitLab, kGitea, kForgejo };

struct RepositoryFacts {
  // Ecosystems by the names of `ecosystems:`, in a fixed order, found by manifests at the top and
  // in the two levels of directories below it.
  std::vector<std::string> ecosystems;
  // The test command for what lies at the top; empty if not known.
  std::vector<std::string> test_command;
  // What installs the dependencies that the tests need, for a shell; empty if nothing is known to.
  std::string install_command;
  Forge forge = Forge::kGitHub;
  std::string forge_reason;  // "remote github.com", ".gitlab-ci.yml", ...
  bool has_gitlab_ci = false;
};

// Looks at the names in `top` (at most 10000 of them) and at nothing else of it. `origin` is the
// address of its remote, or empty.
RepositoryFacts LookAt(const std::string& top, const std::string& origin);

// Returns "github", "gitlab", "gitea" or "forgejo".
std::string_view Name(Forge forge);
std::vector<std::string_view> ForgeNames();
// Parses the forge of that name. Fails with kUsage and the nearest one.
Result<Forge> ParseForge(std::string_view name);

}  // namespace starter
