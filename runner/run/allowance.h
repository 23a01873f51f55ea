// SPDX-License-Identifier: Apache-2.0
// What the repository's budgets across runs leave for this one: known before it starts, reserved
// while it goes on, and counted at its end. docs/reference/budgets.md.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/forge.h"
#include "gateway/budget/budget_limits.h"
#include "report/record.h"
#include "run/recorder.h"
#include "run/request.h"
#include "run/trusted/config.h"
#include "spending/store.h"

namespace run {

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
