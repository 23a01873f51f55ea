// SPDX-License-Identifier: Apache-2.0
// Signs what is stated of a run, once everything of it is dead: keyless with the job's own
// identity, with a key, or by a program. What signs is kept meanwhile where no other process of the
// run can find it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unforked_bytes.h"
#include "net/http_client.h"
#include "sigstore/trust/trusted_root.h"

namespace attest {

// Whether a run is to be attested, and how: options of the command line.
struct Wanted {
  bool attest = false;
  std::string attest_key;         // A file: a private key (PEM).
  std::string attest_command;     // A program that signs; with
  std::string attest_public_key;  // a file: the public key (PEM).
  std::string signing_config;     // A file; if empty, the public instance's, and none for keys.

  bool attests() const { return attest || !attest_key.empty() || !attest_command.empty(); }
};

// The rest that signing needs to know of a run.
struct SigningPlace {
  std::string trusted_root;     // A file; if empty, the embedded one.
  net::HttpClientOptions http;  // Of requests to the services.
  bool in_ci = false;           // Files in a checkout are then refused.
};

class Signer {
 public:
  // Reads the key, or the right to ask for the job's identity: SIGSTORE_ID_TOKEN, or what GitHub
  // gives a job with `id-token: write`. Fails with kUsage for options that do not fit together,
  // with kInvalid for a file that is not what it should be, and
  // with kRefused in CI for one in a checkout.
  static Result<Signer> Prepare(const Wanted& wanted, SigningPlace place);

  // Returns whether anything can sign.
  bool can_sign() const { return kind_ != Kind::kNone; }

  // Signs `statement`, a JSON text, and returns the Sigstore bundle (v0.3), which was verified as
  // `agentic-ci verify-run` will. `sha256` is a digest among the statement's subjects. Requires
  // can_sign(); takes at most two minutes. Fails with kSetup or kTemporary where a service refuses
  // or is away, and with kRefused if the bundle does not verify.
  Result<std::string> Sign(std::string_view statement, std::string_view sha256);

 private:
  enum class Kind { kNone, kKey, kCommand, kIdentity };
  Signer() = default;

  Kind kind_ = Kind::kNone;
  UnforkedBytes secret_;      // The key, the token, or the right to ask for one at
  std::string identity_url_;  // this address, unless it is empty.
  std::string command_;
  std::string public_key_;      // PEM.
  std::string signing_config_;  // JSON; empty for a key without services.
  std::optional<sigstore::TrustedRoot> root_;
  net::HttpClientOptions http_;
};

}  // namespace attest
