// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/shared_text.h"
#include "sandbox/plan.h"

namespace sandbox {

// Returns this program's files in /etc, whatever root they are laid over, by their paths: the
// agent's name and id, the machine's names, the gateway's name service and certificates.
std::vector<std::pair<std::string, SharedText>> EtcFiles(const SandboxRequest& request,
                                                         uid_t inner_uid, gid_t inner_gid);

}  // namespace sandbox
