// SPDX-License-Identifier: Apache-2.0
// Copies of files into and out of a lasting sandbox, by the image's `sh` and `tar` with the agent's
// rights. Both are for a process of their own: they wait for the other end of `stream`, borrowed,
// for as long as that takes.
#pragma once

#include <cstdint>
#include <string>

#include "backend/openshell/fetch.h"
#include "backend/openshell/sandbox.h"
#include "base/result.h"
#include "session/protocol.h"

namespace openshell {

// Reads from `stream` what session::SendTransferred() sends, or another tar's archive if the
// request says so, and puts it where `request.path` says, as session/transfer/landing.h decides. At
// most `bytes_max` of an archive are taken; more is kUnsupported. Fails with kInvalid if something
// in the sandbox is in the way, with kIo if the agent may not write there.
Status TakeFiles(const Sandbox& sandbox, const session::TransferRequest& request, int stream,
                 int64_t bytes_max);

// Writes the file or directory `request.path` to `stream`, as session::SendTransferred() does, or
// as session::SendTree() does if the request says so. `scratch` names a directory of this machine
// that is not there yet; it is removed. Returns what was left out, or nothing. Fails with kNotFound
// if the path is not there, and as FetchArchive() does.
Result<std::string> SendFiles(const Sandbox& sandbox, const session::TransferRequest& request,
                              int stream, const std::string& scratch, const FetchLimits& limits);

}  // namespace openshell
