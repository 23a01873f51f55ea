// SPDX-License-Identifier: Apache-2.0
// What client.cc and client_transfer.cc share.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"

namespace session {

// The sandbox's next message; its own error, where it says one.
Result<std::string> Receive(const Fd& connection, Deadline deadline);
Error Malformed();
Status SendScript(const Fd& connection, std::string_view script);

}  // namespace session
