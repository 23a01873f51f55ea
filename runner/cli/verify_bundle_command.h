// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci verify-bundle`: the client protocol of sigstore-conformance. Exit 0: verified, 77:
// not, with the reason's code at the front of the error. No network.
Result<int> VerifyBundleCommand(const Arguments& arguments);

}  // namespace cli
