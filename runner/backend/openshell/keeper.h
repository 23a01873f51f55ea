// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "session/keeper.h"

namespace openshell {

// The limits of a command in a lasting sandbox, as it was created.
struct CommandLimits {
  int64_t timeout_s = 0;
  int64_t output_bytes = 0;
  std::string invocation;  // Gateway::invocation(), where proposals wait for a person; else empty.
};
// Reads the limits from the gateway's state directory at `state`.
Result<CommandLimits> ReadLimits(const std::string& state);
// Returns a script that sets the variables of everything that runs there.
Result<std::string> ReadEnvironment(const std::string& state);
// Held by the command that runs there.
inline constexpr char kCommandLock[] = "/command.lock";

// Creates a lasting sandbox as session::Create() does.
Result<session::Created> CreateLasting(const session::CreateRequest& request);

}  // namespace openshell
