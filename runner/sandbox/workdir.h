// SPDX-License-Identifier: Apache-2.0
// Decides how a policy's paths apply to the checkout, and which of them have to exist.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/model/policy.h"
#include "sandbox/plan.h"

namespace sandbox {

// Fails with kInvalid where `path`, at which `kind` stands, is missing and the policy demands that
// each of its paths exists.
Status CheckRequired(const SandboxRequest& request, const std::string& path, PathKind kind);

enum class WorkdirAccess {
  kWritable,
  kReadOnly,
  kEmpty,       // An empty directory stands in its place.
  kByLandlock,  // The policy opens paths inside it, which mounts do not tell from the rest.
};

// Decides by mounts, because Landlock can take nothing away from a /tmp that may be written, and
// may be missing. Fails with kInvalid where a policy that closes the checkout opens a path inside
// it and Landlock could not close the rest.
Result<WorkdirAccess> DecideWorkdir(const policy::FilesystemPolicy& filesystem,
                                    const std::vector<LandlockRule>& rules,
                                    const std::string& checkout);

}  // namespace sandbox
