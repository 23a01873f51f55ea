// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/data/json.h"
#include "eval/grade/evidence.h"
#include "eval/suite/check.h"

namespace eval {

// Runs a verifier over the evidence in a cell's `directory`: `agentic-ci run` in a sandbox without
// a network and without credentials, in a directory with a copy of that one and with the verifier's
// files. The variable AGENTIC_CI_CHECK is an object of JSON with `value`, the directory `evidence`,
// and `channels` with their completeness. The verifier's last line of output is its answer: "true",
// "false" or "unknown", and why. Whatever else happens is unknown, with the reason.
Verified RunVerifier(const Verifier& verifier, const codec::Json& value,
                     const std::string& directory, const Evidence& evidence);

}  // namespace eval
