// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Parses one entry of `endpoints` in the full form. Fails with kInvalid and the place.
Result<Endpoint> ParseEndpoint(Reader* reader, const codec::YamlNode& node);

// Fails unless every entry is an address or CIDR outside what no policy opens; warns about wide
// ones.
Status CheckAllowedIps(Reader* reader, codec::Position at, const std::vector<std::string>& entries);

}  // namespace policy
