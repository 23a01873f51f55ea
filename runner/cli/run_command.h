// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// Turns the arguments of `run` into a request, and checks whatever can be checked without starting
// anything. Fails with kUsage.
Result<run::Request> ReadRequest(const Arguments& arguments);

// Runs in a sandbox of the backend that `request` asks for. Returns the exit status.
Result<int> RunInBackend(run::Request request);

// Renames, in a job of CI, the report directory that `error` is the refusal of: a commit may have
// put it there, and a later step, or GitLab's `artifacts`, uploads the directory by its name. Does
// nothing for other errors.
void SetRefusedReportAside(const Error& error, const std::string& report_dir);

// `agentic-ci run`. Returns the exit status.
Result<int> RunCommand(const Arguments& arguments);

}  // namespace cli
