// SPDX-License-Identifier: Apache-2.0
// Terminals of the agent's own, where other terminals of its user lie beside them in /dev/pts:
// Landlock lets it make one (/dev/ptmx) and open no other end. The supervisor opens the end that
// belongs to a descriptor of the caller's, whatever number it has.
#pragma once

#include "sandbox/call/call_listener.h"

namespace sandbox {

// Answers ioctl(TIOCGPTPEER), which openpty(3) uses.
void AnswerTerminalCall(const CallListener& listener, const Call& call);
// Answers an open with O_NOCTTY. That of /dev/pts/N gives the caller the other end of its own
// terminal with that number; any other goes on in the kernel, under the agent's rules.
void AnswerTerminalOpen(const CallListener& listener, const Call& call);

}  // namespace sandbox
