// SPDX-License-Identifier: Apache-2.0
#include "run/allowance.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/sys.h"
#include "forge/open/open.h"
#include "report/wording.h"
#include "run/host_proxy.h"

namespace run {
namespace {

constexpr std::chrono::minutes kLedgerLimit{1};
constexpr char kRule[] = "budget";

// A commit of the repository itself, where its ledger's branch may begin.
Result<std::string> RootOf(const forge::Event& event) {
  if (!event.trusted_sha.empty()) return event.trusted_sha;
  if (!event.base_sha.empty()) return event.base_sha;
  if (event.head_origin == forge::HeadOrigin::kBase && !event.head_sha.empty()) {
    return event.head_sha;
  }
  return Error{Code::kSetup, "the event names no commit that the branch " +
                                 std::string(spending::kBranch) + " could begin at"};
}

// Returns whether the token does not suffice for writing: then the post counts.
bool MayNotWrite(const Error& error) {
  return error.code == Code::kRefused || error.code == Code::kNotFound;
}

std::string Today() { return spending::DayOf(std::time(nullptr)); }

}  // namespace

// Every run that has a budget has an id, so that its post counts it.
Status Allowance::OpenStore(const Request& request, const forge::Event& event) {
  if (!request.budget_file.empty()) {
    record_.place = report::kBudgetInFile;
    store_ = std::make_unique<spending::FileStore>(request.budget_file);
    return Ok();
  }
  if (event.forge == forge::ForgeKind::kNone) {
    return Error{Code::kSetup, "no forge keeps what runs have spent", "--budget-file FILE"};
  }
  record_.place = report::kBudgetOnForge;
  const forge::Facts& facts = forge::FactsOf(event.forge);
  std::string token = sys::Environment(kBudgetTokenVariable).value_or("");
  if (token.empty()) token = sys::Environment(facts.token).value_or("");
  if (token.empty()) {
    return Error{Code::kSetup, std::string(facts.token) + " is not set",
                 std::string("export ") + kBudgetTokenVariable + "=..."};
  }
  const forge::Place place{event.forge, event.repository, event.project_id, event.proposal_number};
  forge::ClientOptions options = forge::OptionsFor(place, event.api_url);
  options.token = Secret(std::move(token));
  options.ca_file = request.ca_file;
  options.proxy = HostProxy();
  client_ = std::make_unique<forge::Client>(TRY(forge::Client::Create(std::move(options))));
  forge_ = TRY(forge::Open(*client_, place));
  store_ = std::make_unique<spending::BranchStore>(*forge_, [event] { return RootOf(event); });
  return Ok();
}

Error Allowance::NotStarted(Error error) {
  recorder_.NoteOverBudget();
  return error;
}

// What is not known stops the run, unless the configuration says otherwise.
Status Allowance::Unknown(Error error) {
  error.what = "what earlier runs have spent is not known: " + error.what;
  if (!budget_.warns) {
    if (error.hint.empty()) error.hint = "budget: { unknown: warn } lets runs start all the same";
    return NotStarted(std::move(error));
  }
  known_ = false;
  report::Finding finding;
  finding.rule = kRule;
  finding.severity = report::Severity::kWarning;
  finding.message = error.what + (error.hint.empty() ? "" : " (" + error.hint + ")");
  recorder_.Note(std::move(finding));
  return Ok();
}

void Allowance::Lower(const spending::Left& left, gateway::BudgetLimits* limits) {
  if (limits->cost_usd <= 0 || left.usd < limits->cost_usd) {
    limits->cost_usd = left.usd;
    record_.lowered = true;
  }
}

Result<std::unique_ptr<Allowance>> Allowance::Open(const Request& request,
                                                   const forge::Event& event, const Config& config,
                                                   Recorder& recorder,
                                                   gateway::BudgetLimits* limits) {
  std::unique_ptr<Allowance> allowance(new Allowance(config.budget, recorder));
  Allowance& self = *allowance;
  self.record_.id = sys::RandomHex();
  self.own_ = {self.record_.id, Today(), event.proposal_number, 0, true};
  spending::Ledger ledger;
  Status opened = self.OpenStore(request, event);
  if (opened.ok()) {
    Result<spending::Ledger> read = self.store_->Read(Deadline::After(kLedgerLimit));
    if (read.ok()) ledger = std::move(read).value();
    if (!read.ok()) opened = std::move(read).error();
  }
  if (!opened.ok()) TRY(self.Unknown(std::move(opened).error()));
  // With an empty ledger: at most one whole budget.
  const spending::Left left =
      FindLeft(ledger, config.budget.limits, self.own_.day, self.own_.number);
  self.record_.left_usd = left.usd;
  if (left.usd < spending::kLeastUsd) {
    recorder.Note(self.record_);
    return self.NotStarted(Error{Code::kRefused, DescribeUsedUp(left)});
  }
  self.Lower(left, limits);
  recorder.Note(self.record_);
  return allowance;
}

Status Allowance::Reserve(gateway::BudgetLimits* limits) {
  std::optional<spending::Left> used_up;
  const std::string today = Today();
  auto reserve = [&](spending::Ledger* ledger) {
    std::erase_if(ledger->runs, [&](const auto& run) { return run.id == own_.id; });
    const spending::Left left = FindLeft(*ledger, budget_.limits, own_.day, own_.number);
    record_.left_usd = left.usd;
    used_up.reset();
    if (left.usd < spending::kLeastUsd) {
      used_up = left;
      return false;
    }
    Lower(left, limits);
    own_.usd = limits->cost_usd;
    return Enter(ledger, own_, today);
  };
  if (known_) {
    Status written = store_->Change(reserve, Deadline::After(kLedgerLimit));
    if (used_up) {
      recorder_.Note(record_);
      return NotStarted(Error{Code::kRefused, DescribeUsedUp(*used_up)});
    }
    reserved_ = written.ok();
    const bool by_post = record_.place == report::kBudgetOnForge && !reserved_ &&
                         MayNotWrite(written.error());
    if (!written.ok() && !by_post) TRY(Unknown(std::move(written).error()));
  }
  if (record_.lowered) {
    recorder_.NoteAbout({}, kRule,
                        "the budgets across runs left " + report::HumanCost(limits->cost_usd) +
                            " for this one");
  }
  record_.spent_usd = limits->cost_usd;  // Until it is known.
  recorder_.Note(record_);
  return Ok();
}

void Allowance::Settle(double usd) {
  record_.spent_usd = usd;
  if (reserved_) {
    own_.usd = usd;
    own_.open = false;
    auto settle = [&](spending::Ledger* ledger) { return Enter(ledger, own_, Today()); };
    Status counted = store_->Change(settle, Deadline::After(kLedgerLimit));
    record_.counted = counted.ok();
    if (!counted.ok()) {
      logging::Warn("what this run has spent could not be counted; what was reserved stays so",
                    {{"why", counted.error().what}});
    }
  }
  recorder_.Note(record_);
}

}  // namespace run
