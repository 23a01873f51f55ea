// SPDX-License-Identifier: Apache-2.0
// What a post did, as text.
#pragma once

#include <string>

#include "codec/data/json.h"
#include "post/pull_request.h"

namespace post {

// Returns the object of `post --json`.
codec::Json RenderOutcome(const Outcome& outcome);
// Returns lines for people, neutral.
std::string OutcomeLines(const Outcome& outcome);
// Returns "made comment, check; failed review"; empty if nothing was to be done.
std::string PartsLine(const Outcome& outcome);

}  // namespace post
