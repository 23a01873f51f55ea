// SPDX-License-Identifier: Apache-2.0
// X25519 (RFC 7748) for the TLS servers of this process: the handshakes of one second share a key
// pair, which is then wiped (docs/decisions.md). Toward servers of the world each connection has
// its own, from OpenSSL's default provider.
#pragma once

#include "base/result.h"

namespace gateway {

// The property query (property(7) of OpenSSL) that prefers it, for SSL_CTX_new_ex.
constexpr const char* kKeyExchangeQuery = "?provider=agentic-ci";

// Adds a provider of that name to OpenSSL's default library context, once; without the query above
// nothing is taken from it. For processes of one thread: its state has no lock.
Status InstallKeyExchange();

// Wipes the pair when it is as old as kKeyPairAge; to be called that often.
void WipeStaleKeyPair();

}  // namespace gateway
