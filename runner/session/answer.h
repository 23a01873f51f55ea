// SPDX-License-Identifier: Apache-2.0
// Functions that the parts of the client share.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"

namespace session {

// Sends a message, with `fd` if that is a descriptor. Fails with kIo if the sandbox has ended.
Status Send(const Fd& connection, std::string_view message, int fd = -1);
// Returns the sandbox's next message; its own error, where it says one. Fails with kIo if the
// sandbox has ended.
Result<std::string> Receive(const Fd& connection, Deadline deadline);
// Returns the text of kDone.
Result<std::string> AwaitDone(const Fd& connection);
Error Malformed();
Status SendScript(const Fd& connection, std::string_view script);

}  // namespace session
