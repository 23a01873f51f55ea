// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "codec/glob/glob.h"
#include "codec/text/json_escape.h"
#include "gateway/budget/limits.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

// Per cent of a budget at which people are told, once each.
constexpr std::array<int, 4> kWarnings = {80, 90, 95, 99};
constexpr char kFinishNote[] =
    "[From agentic-ci, which runs this task: 90 % of the budget for it is used, and at 100 % the "
    "run "
    "ends at once. Finish now: begin nothing new, leave the files in a state that can be "
    "delivered, "
    "and say what is left to do.]";
constexpr std::chrono::minutes kRateWindow{1};
// When to come back if open requests may use up the rest: models take some seconds.
constexpr int64_t kOpenWait_s = 5;
// An answer of 426: clients that know both (Codex) ask over HTTP instead.
constexpr const char* kAskOverHttp =
    "a run with a budget must use models over HTTP: usage over a WebSocket cannot be counted";
constexpr double kMicrosPerDollar = 1e6;
// Answers in a row that refuse the credential, each to a request that was sent after the one before
// was refused: clients start with up to two requests at once (a title beside the task), and some
// try once more to renew a login. Claude Code would go on for eleven, in 180 seconds.
constexpr int kRefusedRowMax = 3;
constexpr size_t kRefusedHostsMax = 64;

std::string_view PathOf(const OutgoingRequest& request) {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

bool Upgrades(const OutgoingRequest& request) {
  return codec::FindField(request.fields, "upgrade") != nullptr;
}

// Some servers take the method from a field.
std::string_view MethodOf(const OutgoingRequest& request) {
  const bool named = std::ranges::any_of(request.fields, [](const codec::HttpField& field) {
    return codec::StandsForMethod(field.name);
  });
  return named ? std::string_view("POST") : std::string_view(request.method);
}

ModelCall CallOf(const OutgoingRequest& request) {
  return RecogniseModelCall(MethodOf(request), PathOf(request), Upgrades(request));
}

// Azure's deployments have a model in the path, and clients name one in the body too.
bool NamesModelInBody(const ModelCall& call) {
  switch (call.api) {
    case ModelApi::kOpenAi:
    case ModelApi::kOpenAiResponses:
      return true;
    case ModelApi::kAnthropic:
    case ModelApi::kGemini:
      return call.model.empty();
    default:
      return false;
  }
}

OutgoingRefusal NewBudgetRefusal(ModelApi api, int status, std::string why) {
  OutgoingRefusal refusal;
  refusal.answer = {
      status, {{"Content-Type", "application/json"}}, RenderApiErrorBody(api, {status, why, {}})};
  refusal.engine = record::Engine::kBudget;
  refusal.reason = std::move(why);
  return refusal;
}

OutgoingRefusal NewWaitRefusal(ModelApi api, std::string why, int64_t wait_s) {
  OutgoingRefusal refusal = NewBudgetRefusal(api, 429, std::move(why));
  refusal.answer.fields.push_back({"Retry-After", std::to_string(wait_s)});
  return refusal;
}

bool IsCounted(ModelApi api) { return api != ModelApi::kUncountable && api != ModelApi::kSocket; }

std::string Amount(const std::string& name, double amount) {
  char text[48];
  if (name == "cost") {
    std::snprintf(text, sizeof text, "$%.4f", amount);
  } else {
    std::snprintf(text, sizeof text, "%.0f %s", amount, name.c_str());
  }
  return text;
}

// The model's host as its clients name it: "https://host/v1".
std::string ProviderOf(const Authority& authority) {
  return "https://" + RenderAuthority(authority, 443);
}

}  // namespace

bool IsServedBy(const ModelServer& known, const Authority& server, std::string_view path) {
  return (known.port == 0 || known.port == server.port) &&
         policy::HostMatches(known.host, server.host) &&
         (known.path.empty() || codec::PathSelectorMatches(known.path, path));
}

// One answer on its way: owned by the transaction, ends before the budget does.
class Budget::Observer final : public ResponseObserver {
 public:
  Observer(Budget& budget, const Authority& authority, const OutgoingRequest& request,
           const Question& question)
      : budget_(budget),
        host_(authority.host),
        provider_(ProviderOf(authority)),
        method_(request.method),
        path_(PathOf(request)),
        api_(question.call.api),
        model_(question.models.empty() ? "" : question.models.front()),
        question_(question),
        began_(budget.hooks_.now()) {
    budget_.open_.insert(this);
  }
  ~Observer() override { budget_.open_.erase(this); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  void OnSent(size_t bytes) override { request_bytes_ += static_cast<int64_t>(bytes); }

  void OnHead(const codec::ResponseHead& head) override {
    status_ = head.status;
    succeeded_ = head.status >= 200 && head.status < 300;
    budget_.NoteStatus(*this);
    const codec::HttpField* type = codec::FindField(head.fields, "content-type");
    if (succeeded_) meter_.emplace(api_, type != nullptr ? type->value : "", question_.output_max);
  }
  void OnBody(std::string_view bytes) override {
    if (meter_.has_value()) meter_->Feed(bytes);
  }
  void OnEnd(bool complete) override {
    budget_.open_.erase(this);
    // No answer was waited for; the question was asked, if it was sent.
    if (status_ == 0) meter_.emplace(api_, "", request_bytes_ > 0 ? question_.output_max : 0);
    TokenUsage usage;
    if (meter_.has_value()) usage = meter_->Finish(complete);
    if (usage.model.empty()) usage.model = model_;
    // A deployment's answer may name its model in a way that no price list knows.
    const bool renamed = !model_.empty() && budget_.prices_.Find(usage.model) == nullptr;
    if (renamed && budget_.prices_.Find(model_) != nullptr) usage.model = model_;
    if (meter_.has_value() && usage.total() == usage.output) {
      const bool limited = budget_.limits_.counts_tokens();
      usage.input = request_bytes_ / (limited ? kBytesPerTokenLeast : kBytesPerTokenGuess);
      usage.input += question_.unseen;
      usage.estimated |= usage.input > 0;
    }
    if (usage.searched && question_.output_max > 0) usage.input += kInputTokensUnseen;
    budget_.Take(*this, usage, complete);
  }

 private:
  friend class Budget;
  Budget& budget_;
  std::string host_;
  std::string provider_;
  std::string method_;
  std::string path_;
  ModelApi api_;
  std::string model_;
  Question question_;
  int64_t request_bytes_ = 0;
  Clock::time_point began_;
  int status_ = 0;
  bool succeeded_ = false;
  std::optional<UsageMeter> meter_;
};

Budget::Budget(BudgetLimits limits, PriceList prices, Hooks hooks)
    : limits_(std::move(limits)), prices_(std::move(prices)), hooks_(std::move(hooks)) {
  tokens_ = {"tokens", static_cast<double>(limits_.tokens), 0, 0};
  cost_ = {"cost", limits_.cost_usd, 0, 0};
  requests_ = {"requests", static_cast<double>(limits_.requests), 0, 0};
  for (size_t i = 0; i < limits_.watched_texts.size(); ++i) unseen_.push_back(i);
}

size_t Budget::BodyBytesWanted(const OutgoingRequest& request) const {
  ModelCall call = CallOf(request);
  bool watched = !limits_.watched_texts.empty() && call.api != ModelApi::kNone;
  if (watched && IsCounted(call.api)) return kModelRequestBytesMax;
  return ReadsBody(call) ? kModelRequestBytesMax : 0;
}

// The body names the model, asks for an answer in the background, or bounds its length.
bool Budget::ReadsBody(const ModelCall& call) const {
  if (call.api == ModelApi::kOpenAiResponses) return limits_.any();
  if (call.api != ModelApi::kNone && IsCounted(call.api) && limits_.counts_tokens()) return true;
  return limits_.reads_bodies() && NamesModelInBody(call);
}

bool Budget::IsModelServer(const Authority& server, std::string_view path) const {
  if (!limits_.model_servers) return false;
  if (!model_servers_) model_servers_ = limits_.model_servers();
  return std::any_of(model_servers_->begin(), model_servers_->end(),
                     [&](const ModelServer& one) { return IsServedBy(one, server, path); });
}

ModelCall Budget::CallTo(const Authority& server, const OutgoingRequest& request) const {
  ModelCall call = CallOf(request);
  const std::string_view path = PathOf(request);
  const bool unknown =
      call.api == ModelApi::kNone && (Upgrades(request) || MayUseModel(MethodOf(request), path));
  if (unknown && IsModelServer(server, path)) {
    call.api = Upgrades(request) ? ModelApi::kSocket : ModelApi::kUncountable;
  }
  return call;
}

Budget::Question Budget::Read(const Authority& server, const OutgoingRequest& request) const {
  Question question{CallTo(server, request), {}, false};
  const ModelCall& call = question.call;
  // Its length says nothing, and its model is not seen.
  question.countable = IsCounted(call.api) && codec::CodingsOf(request.fields).empty();
  if (!call.model.empty()) question.models.push_back(call.model);
  if (!ReadsBody(call)) return question;
  PromptBody body = ReadPromptBody(call.api, request.body);
  if (limits_.counts_tokens()) {
    question.output_max = body.output_max;
    question.unseen = body.unseen;
  }
  if (call.api == ModelApi::kOpenAiResponses) question.countable &= body.plain && !body.background;
  if (NamesModelInBody(call) && (call.model.empty() || !body.plain || !body.model.empty())) {
    question.models.push_back(std::move(body.model));
  }
  std::ranges::move(body.others, std::back_inserter(question.models));
  TokenUsage most;
  most.output = question.output_max;
  most.input = static_cast<int64_t>(request.body.size()) / kBytesPerTokenLeast + question.unseen;
  question.tokens_max = static_cast<double>(most.total());
  for (const std::string& model : question.models) {
    const Price* price = prices_.Find(model);
    if (price != nullptr) question.cost_max = std::max(question.cost_max, CostOf(*price, most));
  }
  return question;
}

RequestGuard::Admission Budget::Admit(const Authority& authority, OutgoingRequest& request) {
  Admission admission;
  Question question = Read(authority, request);
  const ModelCall& call = question.call;
  if (call.api == ModelApi::kNone) return admission;
  admission.refusal = Judge(question);
  if (!admission.refusal.has_value()) LookForTexts(call.api, request);
  if (admission.refusal.has_value() || !IsCounted(call.api)) return admission;
  if (tokens_.nearly() || cost_.nearly()) TellToFinish(call.api, request);
  Charge(requests_, 1);
  if (limits_.requests_per_minute > 0) recent_.push_back(hooks_.now());
  // An answer that is compressed could not be counted.
  std::erase_if(request.fields, [](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, "accept-encoding");
  });
  request.fields.push_back({"Accept-Encoding", "identity"});
  admission.observer = std::make_unique<Observer>(*this, authority, request, question);
  return admission;
}

void Budget::EndOpen() {
  while (!open_.empty()) (*open_.begin())->OnEnd(false);
}

std::optional<OutgoingRefusal> Budget::Judge(const Question& question) {
  const ModelApi api = question.call.api;
  for (const Meter* meter : {&tokens_, &cost_, &requests_}) {
    if (meter->exhausted()) return RefuseExhausted(api, *meter);
  }
  if (!limits_.any()) return std::nullopt;
  if (api == ModelApi::kSocket) return NewBudgetRefusal(api, 426, kAskOverHttp);
  if (!question.countable) {
    return NewBudgetRefusal(
        api, 403, "the usage of this request cannot be counted, and this run has a budget");
  }
  if (limits_.reads_bodies()) {
    for (const std::string& model : question.models) {
      std::optional<OutgoingRefusal> refusal = JudgeModel(api, model);
      if (refusal.has_value()) return refusal;
    }
  }
  std::optional<OutgoingRefusal> refusal = JudgeOpen(api);
  return refusal.has_value() ? std::move(refusal) : JudgeRate(api);
}

std::optional<OutgoingRefusal> Budget::JudgeOpen(ModelApi api) const {
  double tokens = tokens_.used;
  double cost = cost_.used;
  for (const Observer* observer : open_) {
    tokens += observer->question_.tokens_max;
    cost += observer->question_.cost_max;
  }
  const bool left =
      (tokens_.limit <= 0 || tokens < tokens_.limit) && (cost_.limit <= 0 || cost < cost_.limit);
  if (left || open_.empty()) return std::nullopt;
  return NewWaitRefusal(api,
                        "the rest of the run's budget may be used up by the " +
                            std::to_string(open_.size()) + " requests to models that are open",
                        kOpenWait_s);
}

std::optional<OutgoingRefusal> Budget::JudgeModel(ModelApi api, const std::string& model) const {
  auto listed = [&](const std::string& allowed) {
    return allowed == model || allowed == PlainModelName(model);
  };
  if (!limits_.models.empty() &&
      std::none_of(limits_.models.begin(), limits_.models.end(), listed)) {
    return NewBudgetRefusal(api, 403, "the model '" + model + "' is not one that this run may use");
  }
  if (limits_.cost_usd > 0 && prices_.Find(model) == nullptr) {
    return NewBudgetRefusal(
        api, 403,
        "the price of the model '" + model +
            "' is unknown, and this run has a cost limit; add to .agentic-ci/config.yml: " +
            PriceLine(model));
  }
  return std::nullopt;
}

std::optional<OutgoingRefusal> Budget::JudgeRate(ModelApi api) {
  if (limits_.requests_per_minute <= 0) return std::nullopt;
  Clock::time_point now = hooks_.now();
  while (!recent_.empty() && now - recent_.front() >= kRateWindow) recent_.pop_front();
  if (static_cast<int64_t>(recent_.size()) < limits_.requests_per_minute) return std::nullopt;
  auto wait = std::chrono::ceil<std::chrono::seconds>(recent_.front() + kRateWindow - now);
  const int64_t wait_s = std::max<int64_t>(wait.count(), 1);
  const std::string rate = std::to_string(limits_.requests_per_minute);
  OutgoingRefusal refusal =
      NewWaitRefusal(api, "more than " + rate + " requests to models in a minute", wait_s);
  for (const auto& [name, value] : {std::pair<const char*, std::string>{"Limit", rate},
                                    {"Remaining", "0"},
                                    {"Reset", std::to_string(wait_s)}}) {
    refusal.answer.fields.push_back({std::string("X-RateLimit-") + name, value});
  }
  return refusal;
}

OutgoingRefusal Budget::RefuseExhausted(ModelApi api, const Meter& meter) {
  OutgoingRefusal refusal =
      NewBudgetRefusal(api, 403,
                       std::string(record::kBudgetSpent) + Amount(meter.name, meter.used) + " of " +
                           Amount(meter.name, meter.limit));
  hooks_.record(record::Notice::Blocked(std::string("budget.") + meter.name, refusal.reason));
  return refusal;
}

void Budget::LookForTexts(ModelApi api, const OutgoingRequest& request) {
  if (limits_.watched_texts.empty()) return;
  ++asked_;
  auto note = [&](std::string type, std::string title) {
    record::Notice notice = record::Notice::Seen(std::move(type), std::move(title));
    notice.counts = {{"request", asked_}};
    return notice;
  };
  if (!IsCounted(api) || !codec::CodingsOf(request.fields).empty()) {
    hooks_.record(note("watch.unread", "a request to a model could not be read for watched texts"));
    return;
  }
  const std::string unescaped = codec::JsonUnescape(request.body);
  std::erase_if(unseen_, [&](size_t number) {
    const std::string& text = limits_.watched_texts[number];
    const bool sent =
        request.body.find(text) != std::string::npos || unescaped.find(text) != std::string::npos;
    if (!sent) return false;
    record::Notice notice = note("watch.text", "a model was sent a watched text");
    notice.counts.emplace_back("text", static_cast<int64_t>(number) + 1);
    hooks_.record(notice);
    return true;
  });
}

void Budget::Charge(Meter& meter, double amount) {
  meter.used += amount;
  if (meter.limit <= 0) return;
  while (meter.warned < kWarnings.size() &&
         meter.used * 100 >= meter.limit * kWarnings[meter.warned]) {
    int percent = kWarnings[meter.warned++];
    hooks_.record(record::Notice::Seen(
        std::string("budget.") + meter.name,
        std::to_string(percent) + " % of the run's budget is used: " +
            Amount(meter.name, meter.used) + " of " + Amount(meter.name, meter.limit),
        record::Notice::Severity::kMedium));
  }
}

// Agents send the whole conversation each time, without what was added to it: so each request
// has the note, at its end, where no cached prefix is lost.
void Budget::TellToFinish(ModelApi api, OutgoingRequest& request) {
  const bool is_signed = std::ranges::any_of(request.fields, [](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, "authorization") && field.value.starts_with("AWS4");
  });
  std::optional<std::string> noted;
  if (!is_signed) noted = WithNote(api, request.body, kFinishNote);
  if (!noted) return;
  request.body = *std::move(noted);
  if (told_) return;
  told_ = true;
  hooks_.record(record::Notice::Seen(
      "budget.finish", "the model is asked to finish: 90 % of the run's budget is used"));
}

void Budget::NoteStatus(const Observer& observer) {
  if (observer.status_ != 401 && observer.status_ != 403) {
    if (observer.succeeded_) refused_.erase(observer.host_);
    return;
  }
  if (refused_.size() >= kRefusedHostsMax && !refused_.contains(observer.host_)) return;
  RefusedRow& row = refused_[observer.host_];
  // A request that began before the last answer was not sent in spite of it.
  if (row.answers > 0 && observer.began_ < row.last) return;
  row.last = hooks_.now();
  if (++row.answers != kRefusedRowMax) return;
  hooks_.record(record::Notice::Blocked("credential.refused",
                                        observer.host_ + " rejected the credential " +
                                            std::to_string(kRefusedRowMax) + " times in a row (" +
                                            std::to_string(observer.status_) + ")"));
  hooks_.credential_refused(observer.host_);
}

void Budget::Take(const Observer& observer, const TokenUsage& usage, bool complete) {
  record::Notice notice;
  notice.kind = record::Notice::Kind::kInference;
  notice.succeeded = observer.succeeded_ && complete;
  notice.model = usage.model;
  notice.provider = observer.provider_;
  notice.method = observer.method_;
  notice.path = observer.path_;
  notice.duration_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(hooks_.now() - observer.began_).count();
  notice.counts = {{"input_tokens", usage.input},
                   {"output_tokens", usage.output},
                   {"cache_read_tokens", usage.cache_read},
                   {"cache_write_tokens", usage.cache_write}};
  if (observer.status_ > 0) notice.counts.emplace_back("http_status", observer.status_);
  if (usage.estimated) notice.counts.emplace_back("estimated", 1);
  const Price* price = prices_.Find(usage.model);
  double cost = price != nullptr ? CostOf(*price, usage) : 0;
  if (price != nullptr) {
    notice.counts.emplace_back("cost_micro_usd",
                               static_cast<int64_t>(std::llround(cost * kMicrosPerDollar)));
  }
  hooks_.record(notice);
  Charge(tokens_, static_cast<double>(usage.total()));
  Charge(cost_, cost);
}

}  // namespace gateway
