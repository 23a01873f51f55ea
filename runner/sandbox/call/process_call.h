// SPDX-License-Identifier: Apache-2.0
// Calls about a process by its number, where the agent's user has other processes: a process may
// change its own priority and processors, and hold itself and its children by a descriptor.
#pragma once

#include "sandbox/call/call_listener.h"

namespace sandbox {

// Answers `call` if it is such a call; otherwise returns false. A number that ends between this
// look and the call itself would have to be given to another process in the meantime.
bool AnswerProcessCall(const CallListener& listener, const Call& call);

}  // namespace sandbox
