// SPDX-License-Identifier: Apache-2.0
// Finds what a repository looks like from outside: enough to write its first configuration.
#pragma once

#include <string>
#include <vector>

#include "starter/forge.h"

namespace starter {

struct RepositoryFacts {
  // Ecosystems by the names of `ecosystems:`, in a fixed order, found by manifests at the top and
  // in the two levels of directories below it.
  std::vector<std::string> ecosystems;
  // The test command for what lies at the top; empty if not known.
  std::vector<std::string> test_command;
  // What installs the dependencies that the tests need, for a shell; empty if nothing is known to.
  std::string install_command;
  const Forge* forge = &Forges().back();
  std::string forge_reason;  // "remote github.com", ".gitlab-ci.yml", ...
};

// Looks at the names in `top` (at most 10000 of them) and at nothing else of it. `origin` is the
// address of its remote, or empty.
RepositoryFacts LookAt(const std::string& top, const std::string& origin);

}  // namespace starter
