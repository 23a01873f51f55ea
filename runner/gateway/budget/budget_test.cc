// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/budget.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"
#include "record/shorthand.h"

namespace gateway {
namespace {

const Authority kHost{"api.anthropic.com", 443};

// A budget with a clock of its own, and everything it recorded.
struct Desk {
  explicit Desk(BudgetLimits limits)
      : budget(std::move(limits), PriceList::BuiltIn(),
               {[this](const record::Notice& notice) { notices.push_back(notice); },
                [this](const std::string& host) { refused_by.push_back(host); },
                [this] { return now; }}) {}

  RequestGuard::Admission Ask(const std::string& body = R"({"model":"claude-sonnet-4-5"})",
                              const std::string& target = "/v1/messages?beta=true") {
    OutgoingRequest request{"POST", target, {{"Accept-Encoding", "gzip"}}, body};
    RequestGuard::Admission admission = budget.Admit(kHost, request);
    fields = request.fields;
    return admission;
  }

  // One call that uses so many tokens of output. False: refused.
  bool Use(int output) {
    RequestGuard::Admission admission = Ask();
    if (admission.refusal.has_value()) return false;
    codec::ResponseHead head;
    head.status = 200;
    head.fields = {{"Content-Type", "application/json"}};
    admission.observer->OnHead(head);
    admission.observer->OnBody(R"({"model":"claude-sonnet-4-5","usage":{"output_tokens":)" +
                               std::to_string(output) + "}}");
    admission.observer->OnEnd(true);
    return true;
  }

  int Count(const std::string& activity) const {
    int count = 0;
    for (const record::Notice& notice : notices) count += notice.activity == activity ? 1 : 0;
    return count;
  }

  Budget::Clock::time_point now;
  std::vector<record::Notice> notices;
  std::vector<std::string> refused_by;
  codec::HttpFields fields;
  Budget budget;
};

BudgetLimits Tokens(int64_t tokens) {
  BudgetLimits limits;
  limits.tokens = tokens;
  return limits;
}

}  // namespace

TEST_CASE("C5: a budget warns once each at 80, 90, 95 and 99 per cent and refuses at 100") {
  Desk desk(Tokens(100));
  CHECK(desk.Use(79));
  CHECK(desk.Count("CREATE") == 0);
  CHECK(desk.Use(1));
  CHECK(desk.Count("CREATE") == 1);
  CHECK(desk.Use(1));
  CHECK(desk.Count("CREATE") == 1);
  CHECK(desk.Use(15));  // 96: two more at once.
  CHECK(desk.Count("CREATE") == 3);
  CHECK(desk.Use(3));
  CHECK(desk.Count("CREATE") == 4);
  CHECK(desk.Use(1));
  CHECK(desk.Count("CREATE") == 4);
  CHECK(desk.Count("BLOCKED") == 0);
  CHECK_FALSE(desk.Use(1));
  CHECK(desk.Count("BLOCKED") == 1);
  CHECK(desk.notices.back().type == "budget.tokens");
}

TEST_CASE("A count beyond every bound uses the budget up") {
  Desk desk(Tokens(2000));
  RequestGuard::Admission admission = desk.Ask();
  codec::ResponseHead head;
  head.status = 200;
  admission.observer->OnHead(head);
  admission.observer->OnBody(
      R"({"usage":{"input_tokens":4611686018427387904,"output_tokens":4611686018427387904}})");
  admission.observer->OnEnd(true);
  CHECK_FALSE(desk.Use(1));
}

TEST_CASE("A question whose answer the client does not wait for is charged") {
  const std::string question =
      R"({"model":"claude-sonnet-4-5","x":")" + std::string(4000, 'x') + "\"}";
  auto use = [&question](const char* target, bool headed) {
    Desk desk(Tokens(1'000'000));
    RequestGuard::Admission admission = desk.Ask("", target);
    admission.observer->OnSent(1000);
    admission.observer->OnSent(question.size() - 1000);
    codec::ResponseHead head;
    head.status = 200;
    head.fields = {{"Content-Type", "text/event-stream"}};
    if (headed) admission.observer->OnHead(head);
    admission.observer->OnEnd(false);
    CHECK_FALSE(desk.notices.back().succeeded);
    return desk.notices.back().counts.front();
  };
  auto asked = static_cast<int64_t>(question.size() / 2);
  for (const char* target : {"/v1/messages", "/v1/chat/completions",
                             "/v1beta/models/m:generateContent", "/model/m/converse-stream"}) {
    for (bool headed : {false, true}) {
      CHECK(use(target, headed) == std::pair<std::string, int64_t>{"input_tokens", asked});
    }
  }
}

TEST_CASE("An answer that does not say what it used counts with the question's length") {
  auto used = [](const std::string& answer) {
    Desk desk(Tokens(1'000'000));
    RequestGuard::Admission admission = desk.Ask("", "/v1/chat/completions");
    admission.observer->OnSent(4000);
    codec::ResponseHead head;
    head.status = 200;
    head.fields = {{"Content-Type", "text/event-stream"}};
    admission.observer->OnHead(head);
    admission.observer->OnBody(answer);
    admission.observer->OnEnd(true);
    return desk.notices.back().counts.front().second;
  };
  CHECK(used("data: {\"choices\":[]}\n\ndata: [DONE]\n\n") == 2000);
  CHECK(used("data: {\"usage\":{\"prompt_tokens\":7}}\n\ndata: [DONE]\n\n") == 7);
}

TEST_CASE("Questions that are open when the run ends are counted, once") {
  Desk desk(Tokens(1'000'000));
  RequestGuard::Admission answered = desk.Ask();
  answered.observer->OnSent(4000);
  answered.observer->OnEnd(false);
  RequestGuard::Admission dropped = desk.Ask();
  dropped.observer.reset();
  RequestGuard::Admission open = desk.Ask();
  open.observer->OnSent(8000);
  REQUIRE(desk.notices.size() == 1);
  desk.budget.EndOpen();
  desk.budget.EndOpen();
  REQUIRE(desk.notices.size() == 2);
  CHECK(desk.notices[1].counts.front().second == 4000);
  CHECK_FALSE(desk.notices[1].succeeded);
}

TEST_CASE("A question waits while those that are open may use up what is left") {
  struct Case {
    const char* name;
    BudgetLimits limits;
    size_t admitted;
  };
  BudgetLimits dollars;
  dollars.cost_usd = 0.15;  // 10,000 tokens of output: $0.15.
  BudgetLimits requests;
  requests.requests = 3;
  for (const Case& row :
       {Case{"fewer than one may use", Tokens(2000), 1}, Case{"two and a half", Tokens(25'000), 3},
        Case{"a cost", dollars, 1}, Case{"requests", requests, 3}, Case{"none", {}, 9}}) {
    CAPTURE(row.name);
    Desk desk(row.limits);
    const std::string question = R"({"model":"claude-sonnet-4-5","max_tokens":10000})";
    std::vector<std::unique_ptr<ResponseObserver>> open;
    std::optional<OutgoingRefusal> refusal;
    while (open.size() < 9 && !refusal.has_value()) {
      RequestGuard::Admission admission = desk.Ask(question);
      if (admission.observer) open.push_back(std::move(admission.observer));
      refusal = std::move(admission.refusal);
    }
    CHECK(open.size() == row.admitted);
    if (!refusal.has_value()) continue;
    const bool waits = row.limits.requests == 0;
    CHECK(refusal->answer.status == (waits ? 429 : 403));
    CHECK((codec::FindField(refusal->answer.fields, "retry-after") != nullptr) == waits);
    // They used nothing: the next is admitted.
    open.clear();
    CHECK(desk.Ask(question).refusal.has_value() == !waits);
  }
}

TEST_CASE("A refusal has the form of the API that was called") {
  Desk desk(Tokens(1));
  REQUIRE(desk.Use(5));
  struct Case {
    const char* target;
    const char* member;
  };
  for (const Case& row :
       {Case{"/v1/messages", "type"}, Case{"/v1/chat/completions", "error"},
        Case{"/v1/responses", "error"}, Case{"/v1beta/models/m:generateContent", "error"},
        Case{"/model/m/invoke", "message"}}) {
    RequestGuard::Admission admission = desk.Ask("{}", row.target);
    REQUIRE(admission.refusal.has_value());
    CHECK(admission.refusal->answer.status == 403);
    CHECK(admission.refusal->engine == record::Engine::kBudget);
    Result<codec::Json> body = codec::ParseJson(admission.refusal->answer.body);
    REQUIRE(body.ok());
    CHECK(body.value().Find(row.member) != nullptr);
  }
}

TEST_CASE("A cost limit counts with the price list, and refuses models without a price") {
  BudgetLimits limits;
  limits.cost_usd = 0.15;  // 10 000 tokens at $15 for a million.
  Desk desk(limits);
  CHECK(desk.Use(9999));
  CHECK(desk.Use(1));
  CHECK_FALSE(desk.Use(1));
  Desk fresh(limits);
  RequestGuard::Admission unpriced = fresh.Ask(R"({"model":"nobody-knows-1"})");
  REQUIRE(unpriced.refusal.has_value());
  CHECK(unpriced.refusal->reason.find("price") != std::string::npos);
  CHECK_FALSE(fresh.Ask().refusal.has_value());
}

TEST_CASE("C7: only listed models may be asked") {
  BudgetLimits limits;
  limits.models = {"claude-sonnet-4-5"};
  Desk desk(limits);
  CHECK_FALSE(desk.Ask(R"({"model":"claude-sonnet-4-5-20250929"})").refusal.has_value());
  CHECK(desk.Ask(R"({"model":"claude-opus-4-5"})").refusal.has_value());
  for (const char* body :
       {"no json", "[]", R"({"model":"claude-sonnet-4-5","model":"claude-opus-4-5"})",
        R"({"model":"claude-sonnet-4-5","Model":"claude-opus-4-5"})",
        // Models that answer in place of the first, or for a tool.
        R"({"model":"claude-sonnet-4-5","fallbacks":[{"model":"claude-opus-4-5"}]})",
        R"({"model":"claude-sonnet-4-5","fallbacks":"default"})",
        R"({"model":"claude-sonnet-4-5","models":["claude-opus-4-5"]})",
        R"({"model":"claude-sonnet-4-5","tools":[{"type":"advisor_20260301","model":"x"}]})"}) {
    INFO(body);
    CHECK(desk.Ask(body).refusal.has_value());
  }
  for (const char* body :
       {R"({"model":"claude-sonnet-4-5","fallbacks":[{"model":"claude-sonnet-4-5"}]})",
        R"({"model":"claude-sonnet-4-5","tools":[{"name":"x"}]})"}) {
    INFO(body);
    CHECK_FALSE(desk.Ask(body).refusal.has_value());
  }
}

TEST_CASE("C4: requests over the rate get 429 and when to come back, until the minute is over") {
  BudgetLimits limits;
  limits.requests_per_minute = 2;
  Desk desk(limits);
  CHECK(desk.Use(1));
  desk.now += std::chrono::seconds(20);
  CHECK(desk.Use(1));
  RequestGuard::Admission third = desk.Ask();
  REQUIRE(third.refusal.has_value());
  CHECK(third.refusal->answer.status == 429);
  const codec::HttpField* wait = codec::FindField(third.refusal->answer.fields, "retry-after");
  REQUIRE(wait != nullptr);
  CHECK(wait->value == "40");
  for (const char* name : {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}) {
    CHECK(codec::FindField(third.refusal->answer.fields, name) != nullptr);
  }
  desk.now += std::chrono::seconds(40);
  CHECK(desk.Use(1));
  CHECK_FALSE(desk.Use(1));
}

TEST_CASE("Without a budget everything passes and every answer is recorded with what it used") {
  Desk desk(BudgetLimits{});
  CHECK(desk.Use(7));
  REQUIRE(desk.notices.size() == 1);
  CHECK(desk.notices[0].kind == record::Notice::Kind::kInference);
  CHECK(desk.notices[0].provider == "https://api.anthropic.com");
  CHECK(desk.notices[0].path == "/v1/messages");
  CHECK(record::RenderShorthand(desk.notices[0]) ==
        "API:INFERENCE [INFO] Success claude-sonnet-4-5 via https://api.anthropic.com 0ms "
        "[POST /v1/messages]");
  CHECK(desk.Ask("{}", "/v1/messages/batches").refusal.has_value() == false);
}

TEST_CASE("Under any limit, work whose use no answer tells is refused") {
  BudgetLimits requests, rate, cost, models;
  requests.requests = rate.requests_per_minute = 5;
  cost.cost_usd = 5;
  models.models = {"claude-sonnet-4-5"};
  for (const BudgetLimits& limits : {Tokens(1000), requests, rate, cost, models}) {
    Desk desk(limits);
    for (const char* target :
         {"/v1/messages/batches", "/v1/images/generations?x", "/v1/Batches/"}) {
      RequestGuard::Admission admission = desk.Ask("{}", target);
      REQUIRE(admission.refusal.has_value());
      CHECK(admission.refusal->answer.status == 403);
    }
    CHECK_FALSE(desk.Ask().refusal.has_value());
  }
}

TEST_CASE("Under a budget, a model's server gets no request that could use a model uncounted") {
  BudgetLimits limits = Tokens(1000);
  limits.model_servers = [] {
    return std::vector<ModelServer>{{"api.anthropic.com", 443, ""},
                                    {"*.example.com", 0, "/llm/**"}};
  };
  Desk desk(limits);
  auto status = [&desk](const std::string& method, const Authority& server,
                        const std::string& target, const codec::HttpFields& fields = {}) {
    OutgoingRequest request{method, target, fields, "{}"};
    RequestGuard::Admission admission = desk.budget.Admit(server, request);
    return admission.refusal.has_value() ? admission.refusal->answer.status : 0;
  };
  const Authority gateway{"a.example.com", 8443};
  const codec::HttpFields socket = {{"Upgrade", "websocket"}};
  CHECK(status("POST", kHost, "/v1/think?x") == 403);
  CHECK(status("post", kHost, "/batch") == 403);
  CHECK(status("POST", gateway, "/llm/v9/think") == 403);
  CHECK(status("GET", kHost, "/v1/live", socket) == 426);
  // The controls: what is counted, what is free, and other servers.
  CHECK(status("POST", kHost, "/v1/messages") == 0);
  CHECK(status("GET", kHost, "/v1/think") == 0);
  for (const char* target :
       {"/v1/messages/count_tokens", "/v1/files", "/api/event_logging/v2/batch", "/api/eval/sdk-1",
        "/upload/v1beta/files", "/v1/responses/input_tokens?x",
        "/v1/publishers/anthropic/models/count-tokens:rawPredict", "/v1/x:countTokens/"}) {
    CAPTURE(target);
    CHECK(status("POST", kHost, target) == 0);
  }
  CHECK(status("POST", gateway, "/repository/git-upload-pack") == 0);
  CHECK(status("GET", gateway, "/events", socket) == 0);
  CHECK(status("POST", {"api.anthropic.com", 8443}, "/v1/think") == 0);
  limits.tokens = 0;
  Desk unlimited(limits);
  OutgoingRequest request{"POST", "/v1/think", {}, "{}"};
  CHECK_FALSE(unlimited.budget.Admit(kHost, request).refusal.has_value());
}

TEST_CASE("Under a budget, an answer in the background is refused, whose use is not seen") {
  Desk desk(Tokens(1000));
  OutgoingRequest plain{"POST", "/v1/responses", {}, ""};
  CHECK(desk.budget.BodyBytesWanted(plain) > 0);
  for (const char* body :
       {R"({"model":"gpt-5","background":true})", R"({"background":"true"})", "no json", "[]",
        R"({"background":false,"background":true})", R"({"background":false,"Background":true})"}) {
    CAPTURE(body);
    RequestGuard::Admission admission = desk.Ask(body, "/v1/responses");
    REQUIRE(admission.refusal.has_value());
    CHECK(admission.refusal->answer.status == 403);
  }
  for (const char* body :
       {R"({"model":"gpt-5"})", R"({"background":false})", R"({"background":null})"}) {
    CHECK_FALSE(desk.Ask(body, "/v1/responses").refusal.has_value());
  }
  Desk unlimited(BudgetLimits{});
  CHECK_FALSE(unlimited.Ask(R"({"background":true})", "/v1/responses").refusal.has_value());
}

TEST_CASE("Under a budget, a compressed question is refused, whose length says nothing") {
  Desk desk(Tokens(1000));
  OutgoingRequest packed{"POST", "/v1/messages", {{"Content-Encoding", "gzip"}}, "x"};
  CHECK(desk.budget.Admit(kHost, packed).refusal.has_value());
  packed.fields = {{"Content-Encoding", "identity"}};
  CHECK_FALSE(desk.budget.Admit(kHost, packed).refusal.has_value());
}

TEST_CASE("Where path and body name a model, both must be allowed") {
  BudgetLimits limits;
  limits.models = {"gpt-5-nano"};
  Desk desk(limits);
  const std::string nano = "/openai/deployments/gpt-5-nano/chat/completions?api-version=1";
  const std::string pro = "/openai/deployments/gpt-5-pro/chat/completions?api-version=1";
  CHECK_FALSE(desk.Ask(R"({"model":"gpt-5-nano"})", nano).refusal.has_value());
  CHECK_FALSE(desk.Ask("{}", nano).refusal.has_value());
  CHECK(desk.Ask(R"({"model":"gpt-5-nano"})", pro).refusal.has_value());
  CHECK(desk.Ask(R"({"model":"gpt-5-pro"})", nano).refusal.has_value());
  CHECK(desk.Ask("no json", nano).refusal.has_value());
  CHECK(desk.Ask("{}", "/openai/deployments/gpt-5-pro/completions").refusal.has_value());
}

TEST_CASE("Under a budget, models are not asked over a WebSocket, and the answer says how else") {
  auto open = [](Desk& desk, const std::string& target) {
    OutgoingRequest request{"GET", target, {{"Upgrade", "websocket"}}, ""};
    return desk.budget.Admit(kHost, request);
  };
  Desk desk(Tokens(100));
  for (const char* target :
       {"/v1/responses", "/v1/realtime?model=gpt-realtime",
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"}) {
    RequestGuard::Admission admission = open(desk, target);
    REQUIRE(admission.refusal.has_value());
    CHECK(admission.refusal->answer.status == 426);
    Desk unlimited(BudgetLimits{});
    CHECK_FALSE(open(unlimited, target).refusal.has_value());
  }
  CHECK_FALSE(open(desk, "/v1/events").refusal.has_value());
  REQUIRE(desk.Use(100));
  RequestGuard::Admission admission = open(desk, "/v1/responses");
  REQUIRE(admission.refusal.has_value());
  CHECK(admission.refusal->answer.status == 403);
  CHECK(admission.refusal->answer.body.find("budget_exceeded") != std::string::npos);
}

TEST_CASE("Answers that would be compressed are asked for as they are") {
  Desk desk(BudgetLimits{});
  desk.Ask();
  REQUIRE(desk.fields.size() == 1);
  CHECK(desk.fields[0].value == "identity");
  desk.Ask("{}", "/v1/models");
  CHECK(desk.fields[0].value == "gzip");
}

TEST_CASE("A price is of the model it names: no other version of a family is caught by it") {
  const PriceList prices = PriceList::BuiltIn();
  struct Case {
    const char* model;
    double input;
  };
  for (const Case& row :
       {Case{"claude-opus-4-8", 5}, Case{"claude-opus-4-8[1m]", 5},
        Case{"claude-opus-4-1-20250805", 15}, Case{"us.anthropic.claude-opus-4-20250514-v1:0", 15},
        Case{"claude-opus-4-6-v1", 5}, Case{"o3-pro-2025-06-10", 20}, Case{"o3-2025-04-16", 2},
        Case{"gpt-5-2025-08-07", 1.25}, Case{"gpt-4o-2024-08-06", 2.5},
        Case{"gpt-4o-2024-05-13", 5}, Case{"gpt-5.1-codex-mini", 0.25},
        Case{"gemini-2.5-pro-preview-06-05", 2.5}, Case{"gemini-2.5-flash-preview-09-2025", 0.3},
        Case{"gemini-2.0-flash-001", 0.1}}) {
    CAPTURE(row.model);
    const Price* price = prices.Find(row.model);
    REQUIRE(price != nullptr);
    CHECK(price->input == row.input);
  }
  for (const char* unpriced : {"claude-opus-4-99", "claude-opus-5", "gpt-4o-audio-preview",
                               "gemini-2.5-flash-image", "o3-deep-research", "ft:gpt-4o:us::1"}) {
    CAPTURE(unpriced);
    CHECK(prices.Find(unpriced) == nullptr);
  }
}

TEST_CASE("A repository's prices are asked first, and the most specific of them decides") {
  PriceList prices = PriceList::BuiltIn();
  Result<PriceList> own = PriceList::Parse(
      "prices:\n  - {model: 'claude-*', input: 100, output: 1}\n"
      "  - {model: 'claude-opus-4-*', input: 101, output: 1}\n"
      "  - {model: claude-opus-4-8, input: 102, output: 1}\n"
      "  - {model: deepseek-v3, input: 103, output: 1}\n",
      "own.yml");
  REQUIRE(own.ok());
  prices.Prefer(std::move(own).value());
  CHECK(prices.Find("claude-opus-4-8-20260101")->input == 102);
  CHECK(prices.Find("claude-opus-4-9")->input == 101);
  CHECK(prices.Find("claude-haiku-4-5")->input == 100);
  CHECK(prices.Find("deepseek-v3")->input == 103);
  CHECK(prices.Find("gpt-5")->input == 1.25);
}

TEST_CASE("An unpriced model is refused with the line that gives it a price") {
  BudgetLimits limits;
  limits.cost_usd = 1;
  Desk desk(limits);
  RequestGuard::Admission unpriced = desk.Ask(R"({"model":"claude-opus-9-20270101"})");
  REQUIRE(unpriced.refusal.has_value());
  CHECK(unpriced.refusal->reason.find(R"(prices: [{model: "claude-opus-9", input: )") !=
        std::string::npos);
}

TEST_CASE("A model that answers under an unpriced name costs what the asked one does") {
  BudgetLimits limits;
  limits.cost_usd = 0.15;
  Desk desk(limits);
  RequestGuard::Admission admission = desk.Ask();
  REQUIRE(admission.observer != nullptr);
  codec::ResponseHead head;
  head.status = 200;
  head.fields = {{"Content-Type", "application/json"}};
  admission.observer->OnHead(head);
  admission.observer->OnBody(R"({"model":"deployment-7","usage":{"output_tokens":10000}})");
  admission.observer->OnEnd(true);
  CHECK(desk.Ask().refusal.has_value());
}

TEST_CASE("A host that refuses the credential three times in a row is told once, others never") {
  Desk desk({});
  std::vector<std::unique_ptr<ResponseObserver>> asked;
  auto ask = [&] { asked.push_back(std::move(desk.Ask().observer)); };
  auto answer = [&](int status) {
    desk.now += std::chrono::seconds(1);
    codec::ResponseHead head;
    head.status = status;
    asked.front()->OnHead(head);
    asked.front()->OnEnd(true);
    asked.erase(asked.begin());
  };
  auto exchange = [&](int status) {
    ask();
    answer(status);
  };
  for (int status : {401, 403, 200, 401, 401, 500, 429}) exchange(status);
  CHECK(desk.refused_by.empty());
  exchange(200);
  // Five at once are one attempt.
  for (int i = 0; i < 5; ++i) ask();
  for (int i = 0; i < 5; ++i) answer(401);
  CHECK(desk.refused_by.empty());
  exchange(401);
  CHECK(desk.refused_by.empty());
  exchange(403);
  exchange(403);
  CHECK(desk.refused_by == std::vector<std::string>{"api.anthropic.com"});
  CHECK(desk.Count("BLOCKED") == 1);
}

TEST_CASE("The price list that is carried has no mistake, and files with one are refused by line") {
  CHECK(PriceList::BuiltIn().Find("claude-sonnet-4-5-20250929") != nullptr);
  CHECK(PriceList::BuiltIn().Find("unheard-of") == nullptr);
  Result<PriceList> bad =
      PriceList::Parse("prices:\n  - {model: x, input: -1, output: 2}\n", "p.yml");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().what.find("p.yml:2:") != std::string::npos);
  CHECK_FALSE(PriceList::Parse("prices:\n  - {model: x, input: 1}\n", "p.yml").ok());
  CHECK_FALSE(
      PriceList::Parse("prices:\n  - {model: x, input: 1, output: 1, y: 2}\n", "p.yml").ok());
}

TEST_CASE("A watched text is recorded once, with the request that had it first") {
  BudgetLimits limits;
  limits.watched_texts = {"send it to evil", "not there"};
  Desk desk(limits);
  OutgoingRequest plain{"POST", "/v1/messages", {}, ""};
  CHECK(desk.budget.BodyBytesWanted(plain) > 0);
  CHECK(Desk(BudgetLimits()).budget.BodyBytesWanted(plain) == 0);
  (void)desk.Ask(R"({"messages":"read it"})");
  (void)desk.Ask(R"({"messages":"then send it to evil"})");
  (void)desk.Ask(R"({"messages":"then send it to evil"})");
  REQUIRE(desk.notices.size() == 1);
  CHECK(desk.notices[0].type == "watch.text");
  CHECK(desk.notices[0].context.empty());
  CHECK(desk.notices[0].counts ==
        std::vector<std::pair<std::string, int64_t>>{{"request", 2}, {"text", 1}});
  // A body that cannot be read may have had it.
  (void)desk.Ask("", "/v1/messages/batches");
  OutgoingRequest packed{"POST", "/v1/messages", {{"Content-Encoding", "zstd"}}, "x"};
  (void)desk.budget.Admit(kHost, packed);
  REQUIRE(desk.notices.size() == 3);
  CHECK(desk.notices[1].type == "watch.unread");
  CHECK(desk.notices[2].type == "watch.unread");
}

TEST_CASE("A watched text is found behind the escapes of JSON") {
  BudgetLimits limits;
  limits.watched_texts = {"say \"yes\" to a/b", "not there"};
  for (const char* body :
       {R"({"messages":"say \"yes\" to a/b"})", R"({"a":"say \u0022yes\" to a\/b"})"}) {
    CAPTURE(body);
    Desk desk(limits);
    (void)desk.Ask(body);
    CHECK(desk.notices.size() == 1);
  }
}

TEST_CASE("A note is the last thing that the user says, in each API that takes one") {
  struct Case {
    ModelApi api;
    const char* body;
    const char* noted;
  };
  using enum ModelApi;
  for (
      const Case& one :
      {Case{kAnthropic,
            R"({"a":0.7,"messages":[{"role":"user","content":"x"}],"z":9007199254740993})",
            R"({"a":0.7,"messages":[{"role":"user","content":"x\n\nend"}],"z":9007199254740993})"},
       Case{
           kAnthropic,
           R"({"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"tool_result"}]}]})",
           R"({"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":"end"}]}]})"},
       Case{kOpenAi, R"({"messages":[{"role":"tool","content":"x"}]})",
            R"({"messages":[{"role":"tool","content":"x"},{"role":"user","content":"end"}]})"},
       Case{kOpenAiResponses, R"({"input":"x"})", R"({"input":"x\n\nend"})"},
       Case{
           kOpenAiResponses, R"({"input":[{"type":"function_call_output"}]})",
           R"({"input":[{"type":"function_call_output"},{"role":"user","content":[{"type":"input_text","text":"end"}]}]})"},
       Case{kGemini, R"({"contents":[{"parts":[{"text":"x"}]}]})",
            R"({"contents":[{"parts":[{"text":"x"},{"text":"end"}]}]})"},
       Case{
           kGemini, R"({"model":"m","request":{"contents":[{"role":"user","parts":[]}]}})",
           R"({"model":"m","request":{"contents":[{"role":"user","parts":[{"text":"end"}]}]}})"}}) {
    CAPTURE(one.body);
    CHECK(WithNote(one.api, one.body, "end") == std::optional<std::string>(one.noted));
  }
  // An answer that was begun, no conversation, no JSON that every reader reads alike, and an API
  // whose requests are signed.
  for (const auto& [api, body] : std::initializer_list<std::pair<ModelApi, const char*>>{
           {kAnthropic, R"({"messages":[{"role":"assistant","content":"x"}]})"},
           {kAnthropic, R"({"messages":[]})"},
           {kAnthropic, R"({"messages":[{"role":"user","content":1}]})"},
           {kAnthropic, R"({"messages":[{"role":"user","content":"x","content":"y"}]})"},
           {kAnthropic, R"({"messages":[1]})"},
           {kAnthropic, "[]"},
           {kAnthropic, ""},
           {kOpenAi, R"({"prompt":"x"})"},
           {kOpenAi, R"({"messages":[{"role":"assistant","content":"x"}]})"},
           {kOpenAiResponses, R"({"previous_response_id":"x"})"},
           {kGemini, R"({"contents":[{"role":"model","parts":[{"text":"x"}]}]})"},
           {kGemini, R"({"request":1})"},
           {kBedrock, R"({"messages":[{"role":"user","content":"x"}]})"}}) {
    CAPTURE(body);
    CHECK_FALSE(WithNote(api, body, "end").has_value());
  }
}

TEST_CASE("From 90 per cent on every question is told to finish, and none before") {
  Desk desk(Tokens(1000));
  const std::string asked = R"({"max_tokens":1,"messages":[{"role":"user","content":"x"}]})";
  const auto told = [&](codec::HttpFields fields) {
    OutgoingRequest request{"POST", "/v1/messages", {}, asked};
    for (codec::HttpField& field : fields) request.fields.push_back(std::move(field));
    RequestGuard::Admission admission = desk.budget.Admit(kHost, request);
    REQUIRE_FALSE(admission.refusal.has_value());
    return request.body != asked;
  };
  REQUIRE(desk.Use(899));
  CHECK_FALSE(told({}));
  REQUIRE(desk.Use(1));
  CHECK(told({}));
  CHECK(told({}));
  CHECK_FALSE(told({{"Authorization", "AWS4-HMAC-SHA256 Credential=x"}}));
  const auto finishes = std::count_if(desk.notices.begin(), desk.notices.end(),
                                      [](const auto& one) { return one.type == "budget.finish"; });
  CHECK(finishes == 1);
}

}  // namespace gateway
