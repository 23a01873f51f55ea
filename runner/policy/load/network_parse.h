// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Parses `network_policies`, sorted by key. Fails with kInvalid and the place.
Result<std::vector<NetworkPolicy>> ParseNetworkPolicies(Reader* reader,
                                                        const codec::YamlNode& node);

}  // namespace policy
