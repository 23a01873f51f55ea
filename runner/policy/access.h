// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace policy {

// The rules an access preset stands for, all of path "**" (OpenShell: read-write has no DELETE).
// None for Access::kNone.
std::vector<HttpRule> ExpandAccess(Access access, codec::Position at);

// "read-only", "read-write", "full"; nothing for kNone.
std::string_view AccessName(Access access);

// In the order of the values of Access behind kNone.
std::vector<std::string_view> AccessNames();

// False for a method no policy author is likely to mean.
bool IsKnownMethod(std::string_view method);

}  // namespace policy
