// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "policy/model/policy.h"

namespace policy {

// Checks whether `next` may take the place of `now` while a sandbox runs. The network may change in
// every way but one: a sandbox that began without `protocol: tcp` has no way to capture its first
// one. The kernel keeps what it was given at the start: the landlock and process sections may not
// change, and no path of the file system section may go; added ones take effect at the next start.
// Otherwise fails with kInvalid and OpenShell's words. Both policies are parsed, so they are valid.
Status CheckLiveUpdate(const Policy& now, const Policy& next);

}  // namespace policy
