// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.h"
#include "gateway/gateway.h"

namespace gateway {

// Messages on the control socket. To the gateway: kServeMessage and a Door, with its socket;
// kUpdateMessage and the hash of a policy, which a file has (policy_wire.h); kRejectMessage, 'q' or
// 'k' (quarantine, keep) and why; kConnectMessage, a Question and its Answer: a connection that the
// supervisor refused at connect(2); or kFinishMessage. From it, once: kReadyMessage and the CA's
// certificate (PEM), or kInvalidMessage or kUnsupportedMessage and the text of an error. Later:
// kRefusedMessage and a model's host that refuses the run's credential; kTokenMessage and a token
// that was fetched, before it is used.
inline constexpr char kServeMessage[] = "serve";
inline constexpr char kUpdateMessage[] = "update";
inline constexpr char kRejectMessage[] = "reject";
inline constexpr char kConnectMessage[] = "connect";
inline constexpr char kFinishMessage[] = "finish";
inline constexpr char kReadyMessage = '+';
inline constexpr char kInvalidMessage = '!';
inline constexpr char kUnsupportedMessage = '-';
inline constexpr char kRefusedMessage = 'r';
inline constexpr char kTokenMessage = 't';

// What the gateway process does after the fork, until it ends. Returns its exit status: 0 after
// kFinishMessage or when the supervisor is gone, 1 when it could not start or could not record.
int RunServer(GatewayConfig config, Fd control);

}  // namespace gateway
