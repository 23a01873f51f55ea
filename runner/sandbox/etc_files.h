// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "sandbox/plan.h"

namespace sandbox {

// Files of ours in /etc, whatever root they are laid over, by their paths: the agent's name and
// id, the machine's names, the gateway's name service and certificates.
std::vector<std::pair<std::string, std::string>> EtcFiles(const SandboxRequest& request,
                                                          uid_t inner_uid, gid_t inner_gid);

}  // namespace sandbox
