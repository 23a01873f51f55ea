// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "codec/data/position.h"

namespace cli {

// Renders an error as a person reads it, with a line end:
//
//   agentic-ci: error: starting the agent: clone3(CLONE_NEWUSER): Operation not permitted
//   agentic-ci: hint: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
//
// One that begins with a place ("FILE:LINE:COL: error: what") stands as it is, so that editors and
// CI find the place. Control characters are made visible: parts of it may come from outside.
std::string RenderError(const Error& error);

// Returns the place of `error`, when it says so ("FILE:LINE:COL: error: ..."); otherwise a line of
// 0.
codec::Position PlaceOf(const Error& error);

// Returns the same as RenderError(), with the line of `source` that the error is about below the
// message and a caret below the place.
std::string RenderErrorIn(const Error& error, std::string_view source);

}  // namespace cli
