// SPDX-License-Identifier: Apache-2.0
// Calls of OpenShell 0.1 that go on, each in a process of its own, as a command of its command line
// would be.
#pragma once

#include <sys/types.h>

#include <string>

#include "backend/openshell/client/rpc_access.h"
#include "base/child.h"
#include "base/result.h"
#include "codec/data/json.h"

namespace openshell {

// Starts a process that executes what `request` (of ExecSandbox) says: its outputs and its status
// are the command's. A failure of the call is "Error: ..." on standard error, and status 1. The
// command's standard input is in `request`, or, if `input` (borrowed) is not -1, read from there as
// it comes.
Result<Child> StartExec(const std::string& state, const codec::Json& request, int input,
                        Deadline deadline, const Child::Streams& streams);

// Returns why the call of such a process, which has ended, broke off; empty if the command ended.
std::string TakeWhyBroken(const std::string& state, pid_t pid);

// Starts a process that writes what `request` (of WatchSandbox) gives, line by line, as
// `openshell logs` of 0.0 does; a line of the gateway is one line. A connection that ends is opened
// again where it broke off. What may have been lost is said on standard error.
Result<Child> StartRecords(const std::string& state, const codec::Json& request,
                           const Child::Streams& streams);

// Starts a process that prints the response of one call as JSON.
Result<Child> StartCall(const std::string& state, const RpcMethod& method,
                        const codec::Json& request);

}  // namespace openshell
