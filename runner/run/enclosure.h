// SPDX-License-Identifier: Apache-2.0
// Where an agent runs, as the one interface that every place implements: agentic-ci's own sandbox
// (run/native/), OpenShell (backend/openshell/). A new place is a folder with an Enclosure, and a
// row in backend/open/.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "change/capture.h"
#include "run/agent_end.h"
#include "run/outcome.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "run/request.h"
#include "run/signals.h"
#include "sandbox/sandbox.h"

namespace run {

class Driver;

// What an enclosure is made for. All of it is borrowed until the enclosure is destroyed.
struct Stage {
  const Request& request;
  Plan& plan;
  ReportDirectory& directory;
  Recorder& recorder;
  const Signals& signals;
  Driver& driver;
};

// One agent's surroundings: policy in force, limits set, the checkout inside. The calls are made in
// this order, each once. Destroying it ends and removes what is still there, wherever it stands.
class Enclosure {
 public:
  virtual ~Enclosure() = default;

  // Makes it ready for the agent, notes its controls and fails with kUnsupported if one that the
  // configuration requires is not among them.
  virtual Status Start() = 0;
  // Starts the agent and stays until it has ended, or a limit, a signal or a loss has ended it;
  // notes that. Fails only where it cannot be watched.
  virtual Result<AgentEnd> Attend() = 0;
  // Completes the gateway's records in the report's directory. Returns what they do not say.
  // Corrects `end` where it turns out to be another.
  virtual Result<RunSigns> CompleteRecords(AgentEnd* end) = 0;
  // Returns what the agent left, as a tree that stays until the destruction; nullopt if it cannot
  // be had, for a reason that is noted. Corrects `end` likewise.
  virtual Result<std::optional<change::ChangedTree>> Collect(AgentEnd* end) = 0;
  // Adds to the outcome what this place knows of such an end.
  virtual void Explain(const AgentEnd& /*end*/, report::OutcomeRecord* /*outcome*/) const {}

  // Removes what the destructor removes of this machine's, for a process that ends without it.
  // Called by another thread, after Attend().
  virtual void RemoveTraces() const {}
  // Returns the last of the removal, which needs nothing of the run and may go on while the report
  // is written; or null.
  virtual std::function<void()> TakeRemoval() { return nullptr; }
};

// Who drives a run between its start and its end. The default is the agent itself.
class Driver {
 public:
  virtual ~Driver() = default;

  // Called before anything is started; may replace the program, and leaves the environment.
  virtual void Replace(agent::AgentPlan* /*plan*/) {}
  // Opens what the planned agent reads; called once, where its streams are this machine's.
  virtual Result<sandbox::AgentInput> OpenInput(const agent::AgentPlan& plan);
  // Stays with what runs in `enclosure`, which has started, until it has ended.
  virtual Result<AgentEnd> Attend(Enclosure& enclosure) { return enclosure.Attend(); }
  // Returns what was written into the checkout meanwhile, with this program's knowledge; or null.
  virtual const change::Meanwhile* meanwhile() const { return nullptr; }
  // Returns whether the changes are applied to the checkout; `asked`: the command line says so.
  virtual bool applies(bool asked) const { return asked; }
  // Returns the same of the files that git ignores, which are applied with the changes only.
  virtual bool applies_ignored(bool asked) const { return asked; }
};

}  // namespace run
