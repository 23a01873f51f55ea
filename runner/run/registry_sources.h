// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "policy/model/policy.h"
#include "run/ecosystem/ecosystem.h"
#include "run/image.h"
#include "run/trusted/trusted_file.h"
#include "sandbox/plan.h"

namespace run {

struct EcosystemRequest {
  std::vector<std::string> names;
  const RunImage* image = nullptr;  // The image whose tools are asked; null for the host's.
  sandbox::SandboxLimits limits;  // The limits of the sandbox in which an image's tools are asked.
  const change::Repository* repository = nullptr;
  std::string checkout;
  TrustedRef ref;
  std::string ca_file;  // If empty, the system's bundle.
};

// Asks the installed tools, all at once, in an empty directory and with an environment that leads
// nowhere, those of an image in a sandbox of it that has no network; reads the lock files; and adds
// a policy for every ecosystem that has a registry. Fails with kInvalid for an unknown name, with
// kSetup for an ecosystem of which no tool and no lock file names a registry, and as
// sandbox::Sandbox::Start does.
Status AddEcosystems(const EcosystemRequest& request, policy::Policy* policy);

}  // namespace run
