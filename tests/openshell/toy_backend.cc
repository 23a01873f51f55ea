// SPDX-License-Identifier: Apache-2.0
// agentic-ci with one more place where agents run, as a test of run/enclosure.h: a copy of the
// checkout, and no isolation at all. This file and its row are all that a place needs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "backend/open/open.h"
#include "base/child.h"
#include "base/sys.h"
#include "run/agent_output.h"
#include "run/collect.h"
#include "run/enclosure.h"
#include "run/native/native.h"
#include "sandbox/scratch_directory.h"
#include "sandbox/tree_copy.h"

namespace {

using sandbox::ControlName;
using sandbox::ControlState;

constexpr int64_t kFilesMax = 1000;

class Toy final : public run::Enclosure {
 public:
  explicit Toy(const run::Stage& stage) : stage_(stage) {}

  Status Start() override {
    const std::vector<sandbox::Control> controls = {
        {ControlName::kTime, ControlState::kEnforced, "by the toy"},
        {ControlName::kOutput, ControlState::kEnforced, "by the toy"},
        {ControlName::kNetwork, ControlState::kUnavailable, "the agent has the host's"}};
    stage_.recorder.Note(controls);
    TRY(run::CheckRequired(stage_.plan.config.require, controls));
    scratch_.emplace(
        TRY(sandbox::ScratchDirectory::Make({"/var/tmp"}, sandbox::ScratchDirectory::Use::kFiles)));
    began_ = sys::FileTime(stage_.plan.checkout.path);
    Fd from = TRY(sys::Open(stage_.plan.checkout.path, O_RDONLY | O_DIRECTORY));
    copy_ = TRY(sys::Open(scratch_->path(), O_RDONLY | O_DIRECTORY));
    TRY(sandbox::CopyTree(from.get(), copy_.get(), {stage_.request.disk_bytes, kFilesMax},
                          std::nullopt, sandbox::LogCopying()));
    return Ok();
  }

  Result<run::AgentEnd> Attend() override {
    Child::Command command;
    command.argv = stage_.plan.agent.argv;
    command.directory = scratch_->path();
    Child agent = TRY(Child::Start({sys::Environment("PATH").value_or(""), ""}, command));
    stage_.directory.Start();
    run::OutputFiles files;
    files.readable = stage_.directory.agent_log.get();
    files.terminal = stage_.request.json ? STDERR_FILENO : STDOUT_FILENO;
    run::AgentOutput output(files, stage_.recorder.secrets());
    const Deadline wall = Deadline::After(std::chrono::seconds(stage_.request.timeout_s));
    run::AgentEnd end;
    for (bool open = true; open && end.kind == run::EndKind::kExited;) {
      pollfd pipe = {agent.output().get(), POLLIN, 0};
      char piece[4096];
      if (::poll(&pipe, 1, wall.poll_ms()) < 0) return Errno("poll");
      if (wall.passed()) end.kind = sandbox::LimitName::kTimeout;
      const ssize_t got = pipe.revents == 0 ? 0 : ::read(pipe.fd, piece, sizeof piece);
      open = got > 0 || pipe.revents == 0;
      if (got <= 0) continue;
      end.output_bytes += got;
      output.Take(run::AgentOutput::Pipe::kOutput, {piece, static_cast<size_t>(got)});
      if (end.output_bytes > stage_.request.output_bytes) end.kind = sandbox::LimitName::kOutput;
    }
    if (end.kind == run::EndKind::kExited) end.status = TRY(agent.Wait(wall));
    end.summary = output.Finish(end.status.value_or(128 + SIGKILL));
    stage_.recorder.Note(end);
    stage_.recorder.Phase("agent");
    return end;
  }

  Result<run::RunSigns> CompleteRecords(run::AgentEnd* /*end*/) override { return run::RunSigns{}; }

  Result<std::optional<change::ChangedTree>> Collect(run::AgentEnd* /*end*/) override {
    change::ChangedTree tree{copy_.get()};
    tree.copied = timespec{};  // Each file is compared.
    tree.meanwhile.since = began_;
    return std::optional(std::move(tree));
  }

 private:
  const run::Stage stage_;
  std::optional<sandbox::ScratchDirectory> scratch_;
  Fd copy_;
  timespec began_{};
};

Status Check(const run::Request& request) {
  constexpr auto kTaken =
      std::to_array<std::string_view>({"backend", "timeout", "output", "policy", "report-dir",
                                       "workdir", "apply", "apply-ignored"});
  for (const std::string& name : request.given) {
    if (std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end()) continue;
    return Error{Code::kUnsupported, "--" + name + " cannot be enforced by the toy"};
  }
  return Ok();
}

}  // namespace

namespace backend {

std::span<const Row> Rows() {
  static const std::array<Row, 2> kRows = {{
      {run::NativeBackend()},
      {{.name = "toy",
        .check = Check,
        .make = [](const run::Stage& stage) -> std::unique_ptr<run::Enclosure> {
          return std::make_unique<Toy>(stage);
        }}},
  }};
  return kRows;
}

}  // namespace backend
