// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci verify-bundle`: the client protocol of sigstore-conformance. Returns exit status 0 if
// verified, 77 if not, with the reason's code at the front of the error. Uses no network.
Result<int> VerifyBundleCommand(const Arguments& arguments);

}  // namespace cli
