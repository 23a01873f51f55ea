// SPDX-License-Identifier: Apache-2.0
// Plans the budget of a run, with what the budgets across runs leave for it, and checks before
// anything starts whether it can be enforced.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/description.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/forge.h"
#include "gateway/budget/budget_limits.h"
#include "gateway/credential/bound_secret.h"
#include "report/record.h"
#include "run/policy_source.h"
#include "run/recorder.h"
#include "run/request.h"
#include "run/trusted/config.h"
#include "spending/store.h"

namespace run {

// Plans the budget. The command line's values take precedence over the configuration's.
gateway::BudgetLimits PlanBudget(const Request& request, const Config& config);

// Returns a function that returns the servers that are known to be models': those that the run's
// providers and the request name, and the public APIs of every provider. It reads the descriptions
// of all providers. It keeps nothing of the secrets' values.
std::function<std::vector<gateway::ModelServer>()> ModelServers(
    const Request& request, const std::vector<gateway::BoundSecret>& secrets);

// Fails with kSetup when the cost is limited and a model that the request or the configuration
// names has no price: each of its requests would be refused. The hint is the line to add.
// `agent` (null: `command`) may have names of its own for models.
Status CheckPrices(const agent::AgentDescription* agent, const Request& request,
                   const Config& config, const gateway::BudgetLimits& limits);

// Fails with kInvalid and "file:line:col: error: what" when models' answers must be counted and an
// endpoint has `tls: skip`: nothing could be counted there.
Status CheckCountable(const LoadedPolicy& policy, const gateway::BudgetLimits& limits);

// What the repository's budgets across runs leave for this one: known before it starts, reserved
// while it goes on, and counted at its end. docs/reference/config.md, "Budgets across runs".
class Allowance {
 public:
  // Reads what earlier runs have spent, lowers the cost limit of `limits` to what is left, and
  // notes it. Borrows `request` and `recorder`. Where less than a cent is left, or that is not
  // known and the configuration does not let a run start all the same, fails, and notes that it is
  // for the budget.
  static Result<std::unique_ptr<Allowance>> Open(const Request& request, const forge::Event& event,
                                                 const Config& config, Recorder& recorder,
                                                 gateway::BudgetLimits* limits);

  // Reserves the cost limit of `limits`, lowered to what is left by now, where this process may
  // write the ledger. Fails as Open() does. The run's agent is started next.
  Status Reserve(gateway::BudgetLimits* limits);
  // Counts what the run has spent, where Reserve() could write; otherwise the post of its report
  // does. A failure is a warning: what was reserved stays so.
  void Settle(double usd);

 private:
  // The ledger's place, with the token: it is opened for each use, since no child may inherit it.
  struct Opened {
    std::unique_ptr<forge::Client> client;
    std::unique_ptr<forge::Forge> forge;
    std::unique_ptr<spending::Store> store;
  };

  Allowance(const Request& request, forge::Event event, const Config& config, Recorder& recorder);
  Result<Opened> OpenStore() const;
  Result<spending::Ledger> ReadLedger() const;
  Status ChangeLedger(const spending::Edit& edit) const;
  Error NotStarted(Error error);
  Status Unknown(Error error);
  void Lower(const spending::Left& left, gateway::BudgetLimits* limits);

  const Request& request_;
  const forge::Event event_;
  const Config::Budget budget_;
  Recorder& recorder_;
  spending::Spent own_;
  report::BudgetRecord record_;
  bool known_ = true;  // What earlier runs have spent.
  bool reserved_ = false;
};

}  // namespace run
