// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "policy/policy.h"
#include "run/ecosystem.h"
#include "run/trusted_file.h"

namespace run {

struct EcosystemRequest {
  std::vector<std::string> names;
  std::vector<std::string> binaries;  // Who may read from the registries.
  std::string search_path;            // Where tools are looked for: PATH.
  const change::Repository* repository = nullptr;
  std::string checkout;
  TrustedRef ref;
  std::string ca_file;  // Empty: the system's bundle.
};

// Asks the installed tools, all at once, with an environment that leads nowhere; reads the lock
// files; and adds a policy for every ecosystem that has a registry. Fails with kInvalid for an
// unknown name and with kSetup for an ecosystem of which no tool and no lock file names a registry.
Status AddEcosystems(const EcosystemRequest& request, policy::Policy* policy);

}  // namespace run
