// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Parses `network_middlewares`, by `order`. Fails with kInvalid and the place.
Result<std::vector<Middleware>> ParseMiddlewares(Reader* reader, const codec::YamlNode& node);

// Checks that no host that a middleware which fails closed must look into has a blind tunnel
// (OpenShell). Fails with kInvalid at the middleware.
Status CheckMiddlewareTunnels(const Reader& reader, const Policy& policy);

}  // namespace policy
