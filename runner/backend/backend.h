// SPDX-License-Identifier: Apache-2.0
// Lasting sandboxes, as every backend gives them. What a backend cannot give fails with
// kUnsupported or is stated in the run's record (`controls`); nothing is made up.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "run/request.h"
#include "session/client.h"
#include "session/keeper.h"

namespace backend {

class Backend {
 public:
  virtual ~Backend() = default;

  // Starts a sandbox that lives until it is deleted or its time has passed.
  virtual Result<session::Created> Create(const session::CreateRequest& request) = 0;
  // Runs `script`, one at a time; see session::Exec().
  virtual Result<session::CommandResult> Exec(const std::string& name, std::string_view script,
                                              const session::ExecRequest& request,
                                              const session::Sink& sink) = 0;
  // Returns what has changed in the checkout since the sandbox was created.
  virtual Result<session::Diff> Changes(const std::string& name) = 0;
  virtual Result<session::SandboxState> State(const std::string& name, Deadline deadline) = 0;
  virtual Result<session::SandboxState> Reset(const std::string& name) = 0;
  // Ends it and writes its report.
  virtual Result<session::EndReport> Delete(const std::string& name,
                                            const session::DeleteRequest& request) = 0;
};

// Makes agentic-ci's own backend.
std::unique_ptr<Backend> Native(session::Place place);

}  // namespace backend
