// SPDX-License-Identifier: Apache-2.0
// An agent as a package of npm's, and the lock file that pins what it consists of.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace agent {

struct Package {
  std::string name;      // "@openai/codex".
  std::string version;   // Exact: "1.2.3".
  std::string lockfile;  // Its path in the repository.
  std::string lock;      // Its text; empty if not read yet.
};

// Parses NAME@VERSION, as npm has it. Fails with kInvalid for a range, a tag, an address or a path.
Result<Package> ParsePackage(std::string_view text);

// Checks that `package.lock` is a lock file of npm's (version 2 or 3) for a directory that depends
// on that version of the package, and pins each package by a SHA-512 digest. Fails with kInvalid,
// which names the first package that it does not pin.
Status CheckLock(const Package& package);

// Returns the package.json that the lock file is for.
Result<std::string> ManifestOf(const Package& package);

}  // namespace agent
