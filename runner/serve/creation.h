// SPDX-License-Identifier: Apache-2.0
// The start of a sandbox, from its options to its first state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/request.h"
#include "serve/method.h"
#include "serve/work.h"
#include "session/client.h"
#include "session/keeper.h"
#include "session/place.h"

namespace serve {

// How `create` reads its options: as the command line does.
struct CreateOptions {
  std::vector<Member> members;
  struct Wanted {
    session::CreateRequest request;
    std::string snapshot;  // What it begins with; may be empty.
    std::string snapshot_key;
  };
  // Reads `params`, which were checked, for a sandbox called `name` whose report goes to
  // `report_dir` unless they say otherwise. Fails with kUsage.
  std::function<Result<Wanted>(const codec::Json& params, const std::string& name,
                               const std::string& report_dir)>
      read;
};

// A sandbox that is being started: `create`, `fork`.
class Creation final : public Task {
 public:
  // With `origin`, its policy is what replaced that sandbox's, and its state that sandbox's unless
  // there is a snapshot. `in_child` runs first in each process that is forked from this one.
  static Result<std::unique_ptr<Creation>> Start(const session::Place& place, std::string id,
                                                 Output& output, const CreateOptions& options,
                                                 const codec::Json& params,
                                                 const std::string& origin,
                                                 const std::function<void()>& in_child);

  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  void Cancel() override;

  // Returns the facts of the sandbox, whose keeper is a child of this process.
  const session::Facts& facts() const { return starting_.facts; }

 private:
  Creation(const session::Place& place, std::string id, Output& output,
           CreateOptions::Wanted wanted, std::function<void()> in_child)
      : Task(std::move(id), output),
        place_(place),
        wanted_(std::move(wanted)),
        in_child_(std::move(in_child)) {}
  void Begin();
  Status BeginRestore();
  Result<session::SandboxState> Restore() const;

  const session::Place& place_;
  CreateOptions::Wanted wanted_;
  std::function<void()> in_child_;
  session::Starting starting_;
  session::AskedSnapshot origin_;  // The state that a fork begins with, until restore_ has it.
  std::unique_ptr<Work> restore_;  // Where it begins with another state than an empty one.
};

}  // namespace serve
