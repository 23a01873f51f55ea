// SPDX-License-Identifier: Apache-2.0
// The work of helpers (session/helper.h). Each is given the descriptor of a stream first.
#pragma once

#include "sandbox/plan.h"
#include "session/helper.h"
#include "session/protocol.h"

namespace session {

// Plans are borrowed, and outlive the work.
Helper::Work TakeFiles(const sandbox::SandboxPlan& plan, TransferRequest request);
Helper::Work SendFiles(TransferRequest request);
// Sends the layer. Is given the directory of the writable layers too. Its result has, of
// SnapshotFacts, files, bytes, left_out and first_left_out.
Helper::Work SendLayer(const sandbox::SandboxPlan& plan);
// Opens a terminal of the sandbox's and sends its master over the socket it is given. Its result is
// the path of the other side.
Helper::Work OpenTerminalInside(TerminalRequest request);
// Writes the layer, of at most `bytes_max` bytes, into the tree of files that it works in.
Helper::Work TakeLayer(const sandbox::SandboxPlan& plan, RestoreRequest request, int64_t bytes_max);

}  // namespace session
