// SPDX-License-Identifier: Apache-2.0
#include "serve/creation.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "serve/result_json.h"
#include "session/client.h"
#include "session/snapshot/snapshot.h"

namespace serve {
namespace {

codec::Json ResultOf(const session::Facts& facts, const session::SandboxState& state) {
  codec::Json json = JsonOf(facts);
  AddState(state, &json);
  return json;
}

}  // namespace

Result<std::unique_ptr<Creation>> Creation::Start(const session::Place& place, std::string id,
                                                  Output& output, const CreateOptions& options,
                                                  const codec::Json& params,
                                                  const std::function<void()>& in_child) {
  std::string name = params.StringAt("name");
  if (name.empty()) name = "sandbox-" + sys::RandomHex().substr(0, 8);
  TRY(session::CheckName(name));
  // With the sandbox's own directory, its report goes when it ends.
  const std::string report = place.path() + "/" + name + "/report";
  CreateOptions::Wanted wanted = TRY(options.read(params, name, report));
  if (!wanted.request.run.backend.local) {
    return Error{Code::kUnsupported, "only agentic-ci's own sandboxes can be created here"};
  }
  std::unique_ptr<Creation> creation(
      new Creation(place, std::move(id), output, std::move(wanted), in_child));
  const pid_t server = ::getpid();
  creation->starting_ = TRY(session::StartKeeper(creation->wanted_.request, [&] {
    // It ends with the server, however that ends.
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != server) ::_exit(1);
    in_child();
  }));
  return creation;
}

void Creation::AddSources(std::vector<pollfd>* sources) const {
  if (restore_) return restore_->AddSources(sources);
  sources->push_back({starting_.ready.get(), POLLIN, 0});
  sources->push_back({-1, 0, 0});
}

void Creation::Serve(const pollfd* sources) {
  if (!restore_) {
    if (sources[0].revents != 0) Begin();
    return;
  }
  restore_->Serve(sources);
}

void Creation::Begin() {
  Result<session::SandboxState> state = session::AwaitReady(starting_.ready);
  starting_.ready.Close();
  if (!state.ok()) return Fail(state.error());
  if (wanted_.snapshot.empty()) return Succeed(ResultOf(starting_.facts, state.value()));
  auto restore = [this]() -> Result<codec::Json> {
    auto restored = [this]() -> Result<session::SandboxState> {
      session::FoundSnapshot found =
          TRY(session::FindSnapshot(wanted_.snapshot, wanted_.snapshot_key));
      return session::RestoreSnapshot(place_, starting_.facts.name, found);
    }();
    if (restored.ok()) return ResultOf(starting_.facts, restored.value());
    (void)session::Delete(place_, starting_.facts.name, {});
    return std::move(restored).error();
  };
  Result<std::unique_ptr<Work>> work = Work::Start(id(), output(), restore, in_child_);
  if (!work.ok()) {
    (void)::kill(static_cast<pid_t>(starting_.facts.pid), SIGTERM);
    return Fail(work.error());
  }
  restore_ = std::move(work).value();
  restore_->AnswerTo([this](const Result<codec::Json>& result) { Conclude(result); });
}

void Creation::Cancel() {
  (void)::kill(static_cast<pid_t>(starting_.facts.pid), SIGTERM);
  if (restore_) return restore_->Cancel();
  Fail(Cancelled());
}

}  // namespace serve
