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
                                                  const std::string& origin,
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
  if (!origin.empty()) {
    wanted.request.policy = TRY(place.ReplacedPolicy(origin));
  }
  std::unique_ptr<Creation> creation(
      new Creation(place, std::move(id), output, std::move(wanted), in_child));
  // The snapshot is requested before anything else: commands that the origin gets later must not be
  // in it.
  if (!origin.empty() && creation->wanted_.snapshot.empty()) {
    creation->origin_ = TRY(session::AskSnapshot(place, origin));
  }
  const pid_t server = ::getpid();
  creation->starting_ = TRY(session::StartKeeper(creation->wanted_.request, [&] {
    // It ends with the server, however that ends.
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != server) ::_exit(1);
    in_child();
  }));
  Status begun = creation->origin_.layer.valid() ? creation->BeginRestore() : Ok();
  if (begun.ok()) return creation;
  (void)::kill(static_cast<pid_t>(creation->starting_.facts.pid), SIGTERM);
  return std::move(begun).error();
}

void Creation::AddSources(std::vector<pollfd>* sources) const {
  // A forked copy of this process calls this (Loop::Forget()) while restore_ is null.
  if (!starting_.ready.valid() && restore_) return restore_->AddSources(sources);
  sources->push_back({starting_.ready.get(), POLLIN, 0});
  sources->insert(sources->end(), {{-1, 0, 0}, {-1, 0, 0}});
}

void Creation::Serve(const pollfd* sources) {
  if (!starting_.ready.valid()) return restore_->Serve(sources);
  if (sources[0].revents != 0) Begin();
}

void Creation::Begin() {
  Result<session::SandboxState> state = session::AwaitReady(starting_.ready);
  starting_.ready.Close();
  if (!state.ok()) return Fail(state.error());
  if (restore_) return;
  if (wanted_.snapshot.empty()) return Succeed(ResultOf(starting_.facts, state.value()));
  Status begun = BeginRestore();
  if (begun.ok()) return;
  (void)::kill(static_cast<pid_t>(starting_.facts.pid), SIGTERM);
  Fail(begun.error());
}

Status Creation::BeginRestore() {
  auto restore = [this]() -> Result<codec::Json> {
    Result<session::SandboxState> restored = Restore();
    if (restored.ok()) return ResultOf(starting_.facts, restored.value());
    // Not before it is there: its own start would be what failed.
    (void)session::AskState(place_, starting_.facts.name, Deadline::Never());
    (void)session::Delete(place_, starting_.facts.name, {});
    return std::move(restored).error();
  };
  restore_ = TRY(Work::Start(id(), output(), restore, in_child_));
  restore_->AnswerTo([this](const Result<codec::Json>& result) { Conclude(result); });
  origin_ = {};
  return Ok();
}

Result<session::SandboxState> Creation::Restore() const {
  const std::string& name = starting_.facts.name;
  if (origin_.layer.valid()) return session::CopyState(place_, origin_, name);
  session::FoundSnapshot found = TRY(session::FindSnapshot(wanted_.snapshot, wanted_.snapshot_key));
  return session::RestoreSnapshot(place_, name, found);
}

void Creation::Cancel() {
  (void)::kill(static_cast<pid_t>(starting_.facts.pid), SIGTERM);
  if (!starting_.ready.valid()) return restore_->Cancel();
  Fail(Cancelled());
}

}  // namespace serve
