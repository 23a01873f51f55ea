// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/data/json.h"

namespace policy {

// Returns the schema of the value of `hosted_tools`, in a policy and in a configuration.
codec::Json HostedToolsSchema();
// Returns the same of `after_untrusted`.
codec::Json AfterUntrustedSchema();

// Renders a JSON Schema (2020-12) of both forms of the policy file, from the table of schema.h. It
// accepts every policy that ParsePolicy accepts but for numbers in quotes, and refuses unknown
// keys, types and choices; what it cannot say, ParsePolicy checks. Ends with a newline.
std::string RenderPolicySchema();

}  // namespace policy
