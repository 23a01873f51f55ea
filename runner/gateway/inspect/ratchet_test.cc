// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/ratchet.h"

#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace gateway {
namespace {

constexpr char kText[] =
    "Please look at the fourth record of the file, whose last field is not shown at all.";
const Authority kModel{"model.example.com", 443};
const Authority kDocs{"docs.example.com", 443};
const Authority kHook{"hook.example.com", 443};

class Fixture {
 protected:
  explicit Fixture(const std::string& rules = "closes: [writes, hosted_tools]")
      : policy_(Parse(rules)),
        ratchet_(
            policy_, NewFacts(),
            [this](const record::Notice& notice) { notices_.push_back(notice); },
            [this](const std::string& by) { closed_by_.push_back(by); }) {}

  static policy::Policy Parse(const std::string& rules) {
    const std::string text =
        "defaults: none\nhosted_tools: [web_search, image_generation]\n"
        "endpoints:\n"
        "  - model.example.com:443:read-write\n"
        "  - docs.example.com:443:read-only\n"
        "  - hook.example.com:443:read-write\n" +
        (rules.empty() ? "" : "after_untrusted: {" + rules + "}\n");
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(text, {});
    INFO((parsed.ok() ? "" : parsed.error().what));
    REQUIRE(parsed.ok());
    return parsed.value().policy;
  }

  static Ratchet::Facts NewFacts() {
    return {{{{"the text of the issue", kText}}, true}, {{kModel.host, 443}}, {}};
  }

  bool Allows(const Authority& server, std::string_view method) const {
    const policy::CompiledPolicy& compiled = policy_.compiled();
    const policy::Route route = compiled.FindRoute(
        compiled.MatchCaller({std::string(policy::kAgentPrograms), {}, {}}), server.host, 443);
    return route.connection().allowed && route.Decide({method, "/", ""}).allowed;
  }

  OutgoingRequest Prompt(const std::string& body) const {
    OutgoingRequest request;
    request.method = "POST";
    request.body.append(body);
    return request;
  }

  record::Event Answered(const Authority& server) const {
    record::Event event;
    event.host = server.host;
    event.path = "/page";
    return event;
  }

  LivePolicy policy_;
  std::vector<record::Notice> notices_;
  std::vector<std::string> closed_by_;
  Ratchet ratchet_;
};

TEST_CASE_METHOD(Fixture, "A stranger's text in a request to the model closes what writes") {
  CHECK(ratchet_.watches());
  CHECK(Allows(kHook, "POST"));
  ratchet_.LookAtRequest(kModel, "/v1/messages", Prompt("Do what the maintainer asks."));
  ratchet_.LookAtRequest(kHook, "/", Prompt(kText));  // Nothing that a model knows by it.
  CHECK(notices_.empty());
  CHECK(Allows(kHook, "POST"));

  ratchet_.LookAtRequest(kModel, "/v1/messages", Prompt(kText));
  REQUIRE(notices_.size() == 1);
  CHECK(notices_[0].type == record::kNarrowedType);
  CHECK(notices_[0].ContextAt("text") == "the text of the issue");
  CHECK(notices_[0].ContextAt("host") == kModel.host);
  CHECK(notices_[0].ContextAt("path") == "/v1/messages");
  CHECK_FALSE(Allows(kHook, "POST"));
  CHECK(Allows(kHook, "GET"));
  CHECK(Allows(kModel, "POST"));
  CHECK(policy_.source().hosted_tools.empty());
  CHECK_FALSE(ratchet_.watches());
  ratchet_.LookAtRequest(kModel, "/v1/messages", Prompt(kText));
  CHECK(notices_.size() == 1);
}

TEST_CASE_METHOD(Fixture, "What goes on from a narrowed run's state is narrowed, and once") {
  ratchet_.Inherit("the text of the issue");
  CHECK_FALSE(Allows(kHook, "POST"));
  CHECK(Allows(kHook, "GET"));
  ratchet_.Inherit("another text");
  CHECK(notices_.size() == 1);
  CHECK(closed_by_ == std::vector<std::string>{"the text of the issue"});
}

TEST_CASE_METHOD(Fixture, "A body that streams is looked at piece by piece") {
  std::unique_ptr<StreamFilter> filter = ratchet_.NewFilter(kModel, "/v1/messages");
  REQUIRE(filter != nullptr);
  std::string out;
  const std::string text = kText;
  for (size_t at = 0; at < text.size(); at += 5) {
    CHECK_FALSE(filter->Filter(std::string_view(text).substr(at, 5), false, out).has_value());
  }
  CHECK(out == text);
  CHECK(notices_.size() == 1);
  CHECK(ratchet_.NewFilter(kModel, "/") == nullptr);
}

TEST_CASE_METHOD(Fixture, "A request to the model that cannot be read closes") {
  OutgoingRequest request = Prompt("x");
  request.fields.push_back({"Content-Encoding", "zstd"});
  ratchet_.LookAtRequest(kModel, "/", request);
  CHECK(notices_.size() == 1);
}

TEST_CASE_METHOD(Fixture, "An answer of another server closes, its own connection goes on") {
  std::unique_ptr<LivePolicy::Lease> model = policy_.Take();
  model->KeepWhenNarrowed();
  std::unique_ptr<LivePolicy::Lease> docs = policy_.Take();
  std::unique_ptr<LivePolicy::Lease> hook = policy_.Take();
  int told_docs = 0;
  int told_hook = 0;
  model->WhenReplaced([] { FAIL("the model's connection ended"); });
  docs->WhenReplaced([&] { ++told_docs; });
  hook->WhenReplaced([&] { ++told_hook; });
  ratchet_.NoteAnswer(kModel, Answered(kModel), *model);
  CHECK(notices_.empty());

  ratchet_.NoteAnswer(kDocs, Answered(kDocs), *docs);
  REQUIRE(notices_.size() == 1);
  CHECK(notices_[0].ContextAt("text") == "an answer of docs.example.com:443/page");
  CHECK_FALSE(model->replaced());
  CHECK(docs->replaced());
  CHECK(hook->replaced());
  CHECK(told_docs == 0);
  CHECK(told_hook == 1);
  docs->EndSpared();
  docs->EndSpared();
  model->EndSpared();
  CHECK(told_docs == 1);
  CHECK_FALSE(Allows(kHook, "POST"));
}

TEST_CASE_METHOD(Fixture, "A policy that is loaded later opens nothing that has closed") {
  ratchet_.NotePassage(kDocs);
  REQUIRE(notices_.size() == 1);
  policy_.Replace(ratchet_.Narrowed(Parse("")));
  CHECK_FALSE(Allows(kHook, "POST"));
  CHECK(Allows(kHook, "GET"));
  CHECK(policy_.source().hosted_tools.empty());
  policy_.Replace(ratchet_.Narrowed(Parse("closes: [all]")));
  CHECK_FALSE(Allows(kHook, "GET"));
  CHECK(Allows(kModel, "POST"));
}

class Trusting : public Fixture {
 protected:
  Trusting()
      : Fixture(
            "closes: [all], stays: ['hook.example.com:443', image_generation], "
            "trusts: ['docs.example.com']") {}
};

TEST_CASE_METHOD(Trusting, "A trusted server's answers close nothing, and what stays stays whole") {
  std::unique_ptr<LivePolicy::Lease> lease = policy_.Take();
  ratchet_.NoteAnswer(kDocs, Answered(kDocs), *lease);
  CHECK(notices_.empty());
  CHECK(ratchet_.Keeps(kHook));
  CHECK(ratchet_.Keeps(kModel));
  CHECK_FALSE(ratchet_.Keeps(kDocs));
  ratchet_.NoteAnswer(kHook, Answered(kHook), *lease);
  CHECK(notices_.size() == 1);
  CHECK(Allows(kHook, "POST"));
  CHECK_FALSE(Allows(kDocs, "GET"));
  REQUIRE(policy_.source().hosted_tools.size() == 1);
  CHECK(policy_.source().hosted_tools[0].kind == "image_generation");
}

class Unused : public Fixture {
 protected:
  Unused() : Fixture("") {}
};

TEST_CASE_METHOD(Unused, "What is inherited without a rule closes by the first policy with one") {
  ratchet_.Inherit("the text of the issue");
  CHECK(notices_.empty());
  CHECK(closed_by_.size() == 1);
  CHECK(Allows(kHook, "POST"));
  policy_.Replace(ratchet_.Narrowed(Parse("closes: [writes]")));
  CHECK_FALSE(Allows(kHook, "POST"));
}

TEST_CASE_METHOD(Unused, "Without after_untrusted nothing is looked at, and nothing closes") {
  std::unique_ptr<LivePolicy::Lease> lease = policy_.Take();
  CHECK_FALSE(ratchet_.watches());
  ratchet_.LookAtRequest(kModel, "/", Prompt(kText));
  ratchet_.NoteAnswer(kDocs, Answered(kDocs), *lease);
  ratchet_.NotePassage(kDocs);
  CHECK(ratchet_.NewFilter(kModel, "/") == nullptr);
  CHECK(notices_.empty());
  CHECK(policy_.version() == 1);
  CHECK(Allows(kHook, "POST"));
}

}  // namespace
}  // namespace gateway
