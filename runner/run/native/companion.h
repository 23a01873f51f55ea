// SPDX-License-Identifier: Apache-2.0
// Something that works with the agent while it runs, inside the supervisor's loop: the server of a
// sandbox that lasts (session/). A run without one is the usual case.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "change/capture.h"
#include "change/gate.h"
#include "codec/data/secret_mask.h"
#include "run/agent_output.h"
#include "run/enclosure.h"
#include "sandbox/sandbox.h"

namespace run {

class Companion : public Driver {
 public:
  // The surroundings of the running agent. Borrowed until the agent's end.
  struct Stage {
    sandbox::Sandbox& sandbox;  // The companion may put another instance in place (Replace()).
    const Checkout& checkout;
    const ReportDirectory& report;
    std::vector<sandbox::WorkspaceFile>& replaced;  // Plan::replaced; a companion may add to it.
    const codec::SecretMask& secrets;               // May grow.
    const std::string& policy_sha256;
    // Returns the limits for these changes, as JudgeChanges() takes them.
    std::function<change::GateLimits(const change::ChangeSet&)> gates;
    // Adds a note of the rule `withheld-file` to the report; the path may be empty.
    std::function<void(const std::string& path, const std::string& what)> note_withheld;
  };

  Companion* companion() final { return this; }
  // Opens what the agent reads; called once.
  virtual Result<sandbox::AgentInput> OpenInput() = 0;
  // Called once the agent was started.
  virtual Status Begin(const Stage& stage) = 0;
  // Called once nothing of the sandbox is alive any more.
  virtual void End() = 0;

  // Called in each turn of the supervisor: AddSources adds descriptors to wait for, Serve gets the
  // same ones after the wait.
  virtual void AddSources(std::vector<pollfd>* sources) const = 0;
  virtual void Serve(const pollfd* sources) = 0;
  virtual Deadline next() const = 0;

  // Takes all that the agent's processes wrote, before it is masked.
  virtual void Take(AgentOutput::Pipe pipe, std::string_view bytes) = 0;
  // Returns true while the output must not be read, because its receiver is behind.
  virtual bool full() const = 0;
  // Returns whether what is in the pipes by now is to be read to its end; then comes Drained().
  virtual bool drains() const = 0;
  virtual void Drained() = 0;

  // Called if the sandbox reached this limit. Returns true if what reached it is being ended, and
  // the sandbox goes on.
  virtual bool Absorb(sandbox::LimitName limit) = 0;
  // Returns true while something is being done: the idle time does not pass.
  virtual bool busy() const = 0;
  // Returns, once the sandbox is to end, the wait status that the agent's is taken to be; nullopt
  // until then.
  virtual std::optional<int> ends() const = 0;
  // Returns what was written into the checkout while the sandbox was there.
  virtual const change::Meanwhile& meanwhile() const = 0;
};

}  // namespace run
