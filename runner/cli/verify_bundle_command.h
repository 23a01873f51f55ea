// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "sigstore/trust/trusted_root.h"
#include "sigstore/verify.h"

namespace cli {

// Reads a file that an option names, of at most so many bytes.
using ReadText = std::function<Result<std::string>(const std::string& path, size_t bytes_max)>;

// Returns the signer that `--key`, or `--certificate-identity` and `--certificate-oidc-issuer`,
// accept, with what `--require-log` and `--no-log` say. `command` is for messages. Fails with
// kUsage if there is none, with kInvalid for a file that does not hold
// a public key.
Result<sigstore::VerifyOptions> ReadAcceptedSigner(const std::string& command,
                                                   const Arguments& arguments,
                                                   const ReadText& read);
// Returns the trusted root that `--trusted-root` names; nullopt for the built-in one.
Result<std::optional<sigstore::TrustedRoot>> ReadTrustedRoot(const Arguments& arguments,
                                                             const ReadText& read);

// `agentic-ci verify-bundle`: the client protocol of sigstore-conformance. Returns exit status 0 if
// verified, 77 if not, with the reason's code at the front of the error. Uses no network.
Result<int> VerifyBundleCommand(const Arguments& arguments);

}  // namespace cli
