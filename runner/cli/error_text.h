// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace cli {

// Renders an error as a person reads it, with a line end:
//
//   agentic-ci: error: starting the agent: clone3(CLONE_NEWUSER): Operation not permitted
//   agentic-ci: hint: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
//
// One with a place begins with it ("FILE:LINE:COL: error: what") and stands as it is, so that
// editors and CI find the place. Control characters are made visible: parts of it may come from
// outside.
std::string RenderError(const Error& error);

// Returns the same as RenderError(), with the line of `source` that the error is about below the
// message and a caret below the place.
std::string RenderErrorIn(const Error& error, std::string_view source);

}  // namespace cli
