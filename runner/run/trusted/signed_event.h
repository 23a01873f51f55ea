// SPDX-License-Identifier: Apache-2.0
// Verifies whether what the variables of a job say was signed by the forge.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/event.h"
#include "net/proxy.h"
#include "run/trusted/trust.h"

namespace run {

// The values that a signature is verified against, and the ways to get them.
struct SignatureTerms {
  std::string issuer;     // If empty, the event's server.
  std::string keys_file;  // Empty if the issuer publishes them.
  std::string ca_file;    // If empty, the system's.
  net::Proxy proxy;
};

// Verifies the ID token of a GitLab job, if there is one, and takes what it says into `event`.
// Returns whether there is one. Everything else is not signed. Fails with kSetup if the token does
// not verify, or contradicts the variables, with kTemporary if the issuer did not answer.
Result<bool> VerifyEvent(const forge::EnvironmentReader& environment, const SignatureTerms& terms,
                         forge::Event* event, Deadline deadline);

// Returns `trust`, unless it is of a GitLab merge request whose event is not signed: who may push
// its source branch, and so change the job, can set the variables that distinguish it from a
// fork's.
Trust RequireSignature(const forge::Event& event, bool is_signed, const Trust& trust);

}  // namespace run
