// SPDX-License-Identifier: Apache-2.0
// The one place that knows which forges there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/forge.h"

namespace forge {

const Capabilities& CapabilitiesOf(ForgeKind kind);

// Returns the options that all requests to the forge share, and the address that they go to unless
// the caller says otherwise; the token and how to reach the service are left to the caller.
// `api_url` may be empty.
ClientOptions OptionsFor(const Place& place, const std::string& api_url);

// Returns the open pull request whose head is that of `event`, which names none itself: a
// workflow_run that follows a run for a fork's. Returns 0 if there is none; fails with kRefused if
// there are several. For GitHub, Gitea and Forgejo.
Result<int64_t> FindProposal(Client& client, const Event& event, Deadline deadline);

// Opens the forge at `place`, which borrows the client. Fails with kInvalid for a malformed
// repository or number.
Result<std::unique_ptr<Forge>> Open(Client& client, const Place& place);

}  // namespace forge
