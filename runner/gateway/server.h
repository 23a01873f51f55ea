// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.h"
#include "gateway/gateway.h"

namespace gateway {

// Messages on the control socket (base/wire.h): their kind, then what belongs to it.
enum class ServerCommand : uint8_t {
  kServe,    // A GatewaySocket::Kind, with its socket.
  kUpdate,   // The hash of a policy, with a file that has the policy (policy_wire.h).
  kReject,   // Says whether all traffic is now blocked, or the last policy stays; and why.
  kConnect,  // A Question and its Answer: the supervisor refused this connection at connect(2).
  kSubject,  // The index of a grant, and the content of its subject_file.
  kNarrow,   // Why an earlier run was narrowed, whose state the sandbox starts from.
  kFinish,
};
enum class ServerEvent : uint8_t {
  kAuthority,  // The first: the CA's certificate (PEM). Then, once,
  kReady,      // or, in place of either,
  kFailed,     // an Error.
  kRefused,    // A model's host that refuses the run's credential.
  kToken,      // A token that was fetched, before it is used.
  kNameless,   // Why the name of a model's host has no address.
  kIdentity,   // A TakenIdentity: provider, issuer, subject, audience, end.
  kSubject,    // The index of a grant whose subject_file is wanted.
  kNarrowed,   // Why the run was narrowed.
};

// Runs the gateway process after the fork, until it ends. Returns its exit status: 0 after
// ServerCommand::kFinish or when the supervisor is gone, 1 when it could not start or could not
// record.
int RunServer(GatewayConfig config, Fd control);

}  // namespace gateway
