// SPDX-License-Identifier: Apache-2.0
// Agents that a configuration names as packages of npm's. Each is installed once, by this program
// itself inside a sandbox that reaches package registries and nothing else, and kept outside every
// checkout and home directory for later runs, which see it read-only.
#pragma once

#include <functional>
#include <string>

#include "agent/package.h"
#include "base/deadline.h"
#include "base/result.h"

namespace run {

struct PackageRequest {
  const agent::Package& package;  // With its lock file's text.
  std::string store;              // A directory; made where it is not there.
  std::string checkout;           // Absolute: no program in it is started. May be empty.
  std::string isolation;          // The run's tier, which is the installation's too.
  std::string ca_file;            // The CA file, as in Request.
  bool installs = true;           // If false, the package may be missing from the place returned.
  // Asked while others are waited for; true ends the installation with kTemporary.
  std::function<bool()> gives_up = [] { return false; };
};

// Returns the packages of root, or of this user: $AGENTIC_CI_STORE/packages, or else a cache
// directory.
std::string DefaultPackages();

// Returns the directory of the package's programs, and installs the package first if it is not
// there yet. Fails with kNotFound if npm is not installed on this host, with kTemporary if it did
// not end in time, with kSetup and the end of npm's output if npm failed.
Result<std::string> ProvidePackage(const PackageRequest& request, Deadline deadline);

}  // namespace run
