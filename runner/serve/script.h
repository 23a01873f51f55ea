// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "codec/data/json.h"

namespace serve {

// Returns the script that `params` of `exec` ask for. Fails with kUsage.
Result<std::string> ScriptOf(const codec::Json& params);

}  // namespace serve
