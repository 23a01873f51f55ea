// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

namespace backend {
namespace {

class NativeBackend final : public Backend {
 public:
  explicit NativeBackend(session::Place place) : place_(std::move(place)) {}

  Result<session::Created> Create(const session::CreateRequest& request) override {
    return session::Create(request);
  }
  Result<session::CommandResult> Exec(const std::string& name, std::string_view script,
                                      const session::ExecRequest& request,
                                      const session::Sink& sink) override {
    return session::Exec(place_, name, script, request, sink);
  }
  Result<session::Diff> Changes(const std::string& name) override {
    return session::AskDiff(place_, name);
  }
  Result<session::SandboxState> State(const std::string& name, Deadline deadline) override {
    return session::AskState(place_, name, deadline);
  }
  Result<session::SandboxState> Reset(const std::string& name) override {
    return session::Reset(place_, name);
  }
  Result<session::EndReport> Delete(const std::string& name,
                                    const session::DeleteRequest& request) override {
    return session::Delete(place_, name, request);
  }

 private:
  session::Place place_;
};

}  // namespace

std::unique_ptr<Backend> Native(session::Place place) {
  return std::make_unique<NativeBackend>(std::move(place));
}

}  // namespace backend
