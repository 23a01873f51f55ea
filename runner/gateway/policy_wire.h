// SPDX-License-Identifier: Apache-2.0
// The network part of a policy as bytes, from the supervisor to its gateway.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/model/policy.h"

namespace gateway {

std::string RenderPolicyWire(const policy::Policy& policy);
// Returns nullopt if `bytes` are not what RenderPolicyWire of this very program gives.
std::optional<policy::Policy> ParsePolicyWire(std::string_view bytes);

}  // namespace gateway
