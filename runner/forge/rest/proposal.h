// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/reviews.h"

namespace forge {

// Reads a pull request as GitHub and Gitea describe it.
Result<Proposal> ParseProposal(const codec::Json& json);

// Returns the open pull request whose head is that of `event`, which names none itself: a
// workflow_run that follows a run for a fork's. Returns 0 if there is none; fails with kRefused if
// there are several.
Result<int64_t> FindProposal(Client& client, const Event& event, Deadline deadline);

}  // namespace forge
