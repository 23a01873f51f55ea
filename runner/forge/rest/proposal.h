// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "codec/data/json.h"
#include "forge/reviews.h"

namespace forge {

// Reads a pull request as GitHub and Gitea describe it.
Result<Proposal> ParseProposal(const codec::Json& json);

}  // namespace forge
