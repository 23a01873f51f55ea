// SPDX-License-Identifier: Apache-2.0
// Limits how much a run may use models: counted from the models' own responses, enforced before the
// next request.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/budget/budget_limits.h"
#include "gateway/budget/price_list.h"
#include "gateway/budget/response_observer.h"
#include "gateway/budget/usage_meter.h"
#include "record/event.h"

namespace gateway {

// Returns whether `known` covers a request for `path` to `server`. Port 0 covers all ports, an
// empty path all paths; the host may be a pattern.
bool IsServedBy(const ModelServer& known, const Authority& server, std::string_view path);

// Counts and judges. Responses say at their end what they used, so the last of them can go beyond
// the limit. No more than the last can: a request that comes while others are open is refused for
// the moment (429) if these may use up what is left.
class Budget final : public RequestGuard {
 public:
  // The share of tokens or of cost from which on models are told to finish.
  static constexpr double kNearly = 0.9;
  using Clock = std::chrono::steady_clock;
  // The functions that the budget calls; what they use must outlive it.
  struct Hooks {
    std::function<void(const record::Notice&)> record;  // Every answer, every warning.
    // A model's host refuses the run's credential again and again: no further request can help.
    std::function<void(const std::string& host)> credential_refused = [](const std::string&) {};
    std::function<Clock::time_point()> now = Clock::now;
  };
  Budget(BudgetLimits limits, PriceList prices, Hooks hooks);

  size_t BodyBytesWanted(const OutgoingRequest& request) const override;
  Admission Admit(const Authority& authority, OutgoingRequest& request) override;
  // Counts the questions whose answers are still awaited: the run ends. What is admitted later is
  // not counted.
  void EndOpen();

 private:
  class Observer;
  // A request as it is judged.
  struct Question {
    ModelCall call;
    std::vector<std::string> models;  // All that it names, the one of the path first.
    bool countable = false;
    // As in PromptBody. Read under a limit of tokens or cost only; otherwise 0.
    int64_t output_max = 0;
    int64_t unseen = 0;
    // The most that it may use.
    double tokens_max = 0;
    double cost_max = 0;
  };
  // One of the three amounts, and how far it is used up.
  struct Meter {
    const char* name;  // "tokens", "cost", "requests".
    double limit = 0;
    double used = 0;
    size_t warned = 0;  // The number of kWarnings that were given.
    bool exhausted() const { return limit > 0 && used >= limit; }
    bool nearly() const { return limit > 0 && used >= kNearly * limit; }
  };

  ModelCall CallTo(const Authority& server, const OutgoingRequest& request) const;
  bool IsModelServer(const Authority& server, std::string_view path) const;
  bool ReadsBody(const ModelCall& call) const;
  Question Read(const Authority& server, const OutgoingRequest& request) const;
  std::optional<OutgoingRefusal> Judge(const Question& question);
  std::optional<OutgoingRefusal> JudgeModel(ModelApi api, const std::string& model) const;
  std::optional<OutgoingRefusal> JudgeOpen(ModelApi api) const;
  std::optional<OutgoingRefusal> JudgeRate(ModelApi api);
  OutgoingRefusal RefuseExhausted(ModelApi api, const Meter& meter);
  void LookForTexts(ModelApi api, const OutgoingRequest& request);
  void Charge(Meter& meter, double amount);
  void TellToFinish(ModelApi api, OutgoingRequest& request);
  void NoteStatus(const Observer& observer);
  void Take(const Observer& observer, const TokenUsage& usage, bool complete);

  BudgetLimits limits_;
  mutable std::optional<std::vector<ModelServer>> model_servers_;  // Once they are known.
  PriceList prices_;
  // Answers of one host that refused the credential, without one in between that did not.
  struct RefusedRow {
    int answers = 0;
    Clock::time_point last;
  };

  Hooks hooks_;
  Meter tokens_;
  Meter cost_;
  Meter requests_;
  std::deque<Clock::time_point> recent_;  // Requests of the last minute; only with a rate limit.
  std::map<std::string, RefusedRow> refused_;  // By host.
  std::set<Observer*> open_;                   // The answers that have not ended.
  // The watched texts that no model was sent yet, by their places: records mask secrets in texts.
  std::vector<size_t> unseen_;
  int64_t asked_ = 0;  // Requests in which they were looked for.
  bool told_ = false;  // A model was told to finish.
};

}  // namespace gateway
