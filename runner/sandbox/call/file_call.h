// SPDX-License-Identifier: Apache-2.0
// Changes of a file's mode, owner and times. Landlock has no rule for them: they would succeed on
// everything that the agent's user owns.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sandbox/call/call_listener.h"

namespace sandbox {

// Returns the numbers of the calls that are answered here; all others of their kind are refused by
// the filter.
std::vector<int> FileCalls();

// Carries the call out, where what it means lies in one of `writable` (absolute directories without
// links); otherwise it fails with EPERM. The file is opened once and changed through that.
void AnswerFileCall(const CallListener& listener, const Call& call,
                    const std::vector<std::string>& writable);

}  // namespace sandbox
