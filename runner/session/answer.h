// SPDX-License-Identifier: Apache-2.0
// Functions that the parts of the client share.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"

namespace session {

// Returns the sandbox's next message; its own error, where it says one.
Result<std::string> Receive(const Fd& connection, Deadline deadline);
// Returns the text of kDone.
Result<std::string> AwaitDone(const Fd& connection);
Error Malformed();
Status SendScript(const Fd& connection, std::string_view script);

}  // namespace session
