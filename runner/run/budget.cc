// SPDX-License-Identifier: Apache-2.0
#include "run/budget.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/harness.h"
#include "base/log.h"
#include "base/sys.h"
#include "codec/data/yaml.h"
#include "forge/open/open.h"
#include "gateway/budget/price_list.h"
#include "gateway/credential/provider.h"
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

// Adds the public APIs of every provider that are models'.
std::vector<gateway::ModelServer> WithPublicApis(std::vector<gateway::ModelServer> servers) {
  for (const std::string& name : gateway::ProviderNames()) {
    Result<gateway::Provider> provider = gateway::FindProvider(name);
    if (!provider.ok() || !provider.value().bodies_pass) continue;
    for (const gateway::ProviderEndpoint& endpoint : provider.value().endpoints) {
      if (!endpoint.host.empty()) servers.push_back({endpoint.host, endpoint.port, endpoint.path});
    }
  }
  return servers;
}

}  // namespace

gateway::BudgetLimits PlanBudget(const Request& request, const Config& config) {
  gateway::BudgetLimits limits;
  limits.tokens = request.max_tokens > 0 ? request.max_tokens : config.max_tokens;
  limits.cost_usd = request.max_cost_usd > 0 ? request.max_cost_usd : config.max_cost_usd;
  limits.requests = request.max_requests > 0 ? request.max_requests : config.max_requests;
  limits.requests_per_minute = config.requests_per_minute;
  limits.models = config.models;
  limits.watched_texts = request.watched_texts;
  return limits;
}

std::function<std::vector<gateway::ModelServer>()> ModelServers(
    const Request& request, const std::vector<gateway::BoundSecret>& secrets) {
  std::vector<gateway::ModelServer> named;
  if (!request.model_host.empty()) named.push_back({request.model_host, request.model_port, ""});
  for (const gateway::BoundSecret& secret : secrets) {
    if (secret.bodies_pass) named.push_back({secret.host, secret.port, secret.path});
  }
  return [named = std::move(named)] { return WithPublicApis(named); };
}

Status CheckPrices(const agent::AgentDescription* agent, const Request& request,
                   const Config& config, const gateway::BudgetLimits& limits) {
  if (limits.cost_usd <= 0) return Ok();
  std::vector<std::string> models = config.models;
  if (agent == nullptr || !agent::IsModelAlias(*agent, request.model)) {
    models.push_back(request.model);
  }
  gateway::PriceList prices = gateway::PriceList::BuiltIn();
  prices.Prefer(config.prices);
  for (const std::string& model : models) {
    if (model.empty() || prices.Find(model) != nullptr) continue;
    return Error{Code::kSetup,
                 "the price of the model '" + model + "' is unknown, and this run has a cost limit",
                 "in " + std::string(kConfigPath) + ": " + gateway::PriceLine(model)};
  }
  return Ok();
}

Status CheckCountable(const LoadedPolicy& policy, const gateway::BudgetLimits& limits) {
  if (!limits.any()) return Ok();
  for (const policy::NetworkPolicy& network : policy.parsed.policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      if (endpoint.tls != policy::TlsMode::kSkip) continue;
      return codec::InvalidAt(
          policy.file, endpoint.at,
          "the use of models behind 'tls: skip' cannot be counted, and this run has a budget",
          "remove 'tls: skip', or the run's limits of tokens, cost, requests and models");
    }
  }
  return Ok();
}

Allowance::Allowance(const Request& request, forge::Event event, const Config& config,
                     Recorder& recorder)
    : request_(request), event_(std::move(event)), budget_(config.budget), recorder_(recorder) {
  record_.id = sys::RandomHex();
  own_ = {record_.id, Today(), event_.proposal_number, 0, true};
  const bool on_forge = event_.forge != forge::ForgeKind::kNone;
  record_.place = !request.budget_file.empty() ? report::kBudgetInFile
                  : on_forge                   ? report::kBudgetOnForge
                                               : "";
}

Result<Allowance::Opened> Allowance::OpenStore() const {
  Opened opened;
  if (!request_.budget_file.empty()) {
    opened.store = std::make_unique<spending::FileStore>(request_.budget_file);
    return opened;
  }
  if (event_.forge == forge::ForgeKind::kNone) {
    return Error{Code::kSetup, "no forge keeps what runs have spent", "--budget-file FILE"};
  }
  const forge::Facts& facts = forge::FactsOf(event_.forge);
  SecretString token = sys::Environment(kBudgetTokenVariable).value_or("");
  if (token.empty()) token = sys::Environment(facts.token).value_or("");
  if (token.empty()) {
    return Error{Code::kSetup, std::string(facts.token) + " is not set",
                 std::string("export ") + kBudgetTokenVariable + "=..."};
  }
  const forge::Place place{event_.forge, event_.repository, event_.project_id,
                           event_.proposal_number};
  forge::ClientOptions options = forge::OptionsFor(place, event_.api_url);
  options.token = Secret(token);
  options.ca_file = request_.ca_file;
  options.proxy = HostProxy();
  opened.client = std::make_unique<forge::Client>(TRY(forge::Client::Create(std::move(options))));
  opened.forge = TRY(forge::Open(*opened.client, place));
  opened.store =
      std::make_unique<spending::BranchStore>(*opened.forge, [this] { return RootOf(event_); });
  return opened;
}

Result<spending::Ledger> Allowance::ReadLedger() const {
  const Opened opened = TRY(OpenStore());
  return opened.store->Read(Deadline::After(kLedgerLimit));
}

Status Allowance::ChangeLedger(const spending::Edit& edit) const {
  const Opened opened = TRY(OpenStore());
  return opened.store->Change(edit, Deadline::After(kLedgerLimit));
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
  std::unique_ptr<Allowance> allowance(new Allowance(request, event, config, recorder));
  Allowance& self = *allowance;
  Result<spending::Ledger> read = self.ReadLedger();
  if (!read.ok()) TRY(self.Unknown(read.error()));
  const spending::Ledger ledger = read.ok() ? std::move(read).value() : spending::Ledger();
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
    Status written = ChangeLedger(reserve);
    if (used_up) {
      recorder_.Note(record_);
      return NotStarted(Error{Code::kRefused, DescribeUsedUp(*used_up)});
    }
    reserved_ = written.ok();
    const bool by_post =
        record_.place == report::kBudgetOnForge && !reserved_ && MayNotWrite(written.error());
    if (!written.ok() && !by_post) TRY(Unknown(std::move(written).error()));
  }
  if (record_.lowered) {
    recorder_.NoteAbout(
        {}, kRule,
        "the budgets across runs left " + report::HumanCost(limits->cost_usd) + " for this one");
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
    Status counted = ChangeLedger(settle);
    record_.counted = counted.ok();
    if (!counted.ok()) {
      logging::Warn("what this run has spent could not be counted; what was reserved stays so",
                    {{"why", counted.error().what}});
    }
  }
  recorder_.Note(record_);
}

}  // namespace run
