// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/actors.h"

#include <catch2/catch.hpp>

namespace run {
namespace {

forge::Event Started(const std::string& name, std::vector<std::string> actors) {
  forge::Event event;
  event.forge = forge::ForgeKind::kGitHub;
  event.name = name;
  event.repository = "acme/site";
  event.actors = std::move(actors);
  return event;
}

Result<forge::Permission> ReadTable(const std::string& login) {
  if (login == "writer" || login == "other-writer") return forge::Permission::kWrite;
  if (login == "reader" || login == "dependabot") return forge::Permission::kRead;
  if (login == "unreachable") return Error{Code::kTemporary, "the forge responded with 500"};
  return forge::Permission::kNone;
}

const std::vector<std::string> kBots = {"dependabot[bot]"};

bool Trusted(const forge::Event& event) {
  Result<Trust> trust = JudgeActors(event, {true, ""}, kBots, ReadTable);
  REQUIRE(trust.ok());
  CHECK(trust.value().trusted == trust.value().reason.empty());
  return trust.value().trusted;
}

TEST_CASE("Who may write starts a run with secrets, others do not") {
  CHECK(Trusted(Started("pull_request", {"writer"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"reader"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"stranger"})));
  CHECK_FALSE(Trusted(Started("issue_comment", {})));
  CHECK(
      JudgeActors(Started("pull_request", {"reader"}), {true, ""}, {}, ReadTable).value().reason ==
      "the account reader may not write to acme/site");
}

TEST_CASE("A forge that does not answer stops the run") {
  Result<Trust> trust =
      JudgeActors(Started("pull_request", {"unreachable"}), {true, ""}, kBots, ReadTable);
  REQUIRE_FALSE(trust.ok());
  CHECK(trust.error().code == Code::kTemporary);
}

TEST_CASE("Everybody who has a part in a run is asked about") {
  CHECK(Trusted(Started("workflow_run", {"writer", "other-writer"})));
  CHECK_FALSE(Trusted(Started("workflow_run", {"writer", "reader"})));
  CHECK_FALSE(Trusted(Started("issue_comment", {"writer", "stranger"})));
}

TEST_CASE("An application is trusted when it is listed, a person of its name is not") {
  CHECK(Trusted(Started("pull_request", {"dependabot[bot]"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"other[bot]"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"dependabot"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"Dependabot[bot]"})));
  CHECK_FALSE(Trusted(Started("pull_request", {"dependabot[bot]", "reader"})));
  for (const char* name :
       {"*", "*[bot]", "[bot]", "dependabot", "dependabot[bot] ", "a b[bot]", ""}) {
    CHECK_FALSE(ValidBot(name));
  }
  CHECK(ValidBot("my-app[bot]"));
}

TEST_CASE("What was not trusted before is not trusted for its actors") {
  Result<Trust> fork = JudgeActors(Started("pull_request", {"writer"}),
                                   {false, "the pull request comes from a fork"}, kBots, ReadTable);
  CHECK_FALSE(fork.value().trusted);
  CHECK(fork.value().reason == "the pull request comes from a fork");
}

TEST_CASE("Events that only a writer can cause are not asked about, nor is a terminal") {
  for (const char* name : {"push", "schedule", "workflow_dispatch", "merge_group"}) {
    CHECK(Trusted(Started(name, {"unreachable"})));
  }
  forge::Event terminal;
  CHECK(Trusted(terminal));
}

TEST_CASE("Without a token people are believed about branches alone, and applications are not") {
  auto trusted = [](const char* event, const char* actor) {
    return JudgeActors(Started(event, {actor}), {true, ""}, kBots, nullptr).value().trusted;
  };
  CHECK(trusted("pull_request", "reader"));
  CHECK(trusted("workflow_run", "reader"));
  CHECK(trusted("pull_request", "dependabot[bot]"));
  CHECK_FALSE(trusted("pull_request", "other[bot]"));
  for (const char* event :
       {"issue_comment", "issues", "discussion", "pull_request_review", "new"}) {
    CHECK_FALSE(trusted(event, "reader"));
    CHECK(trusted(event, "dependabot[bot]"));
  }
}

TEST_CASE(
    "Under forks: model, a fork's run has its model after a person who may write labeled it") {
  const Trust fork = {false, "the pull request comes from a fork"};
  forge::Event event = Started("pull_request_target", {"writer"});
  event.kind = forge::EventKind::kPullRequestTarget;
  event.head_origin = forge::HeadOrigin::kFork;
  event.head_sha = std::string(40, 'a');
  const ForkRun run{"labeled", event.head_sha, true};
  auto judge = [&](const forge::Event& asked, const ForkRun& with,
                   const PermissionReader& reader = ReadTable) {
    Trust trust = JudgeActors(asked, fork, kBots, reader, with).value();
    CHECK_FALSE(trust.trusted);
    return trust;
  };
  CHECK(judge(event, run).model);
  CHECK(judge(event, run).reason ==
        "the pull request comes from a fork, which writer has labeled: it has its model alone");
  CHECK_FALSE(JudgeActors(event, fork, kBots, ReadTable).value().model);

  auto changed = [&](auto change) {
    forge::Event other = event;
    ForkRun with = run;
    change(&other, &with);
    return judge(other, with);
  };
  const Trust old =
      changed([](forge::Event*, ForkRun* with) { with->head = std::string(40, 'b'); });
  CHECK_FALSE(old.model);
  CHECK(old.reason ==
        "the pull request comes from a fork, and has no model under forks: model: the checkout is "
        "not the commit that was labeled, aaaaaaaaaaaa");
  CHECK_FALSE(changed([](forge::Event*, ForkRun* with) { with->action = "synchronize"; }).model);
  CHECK_FALSE(changed([](forge::Event*, ForkRun* with) { with->has_budget = false; }).model);
  CHECK_FALSE(changed([](forge::Event* other, ForkRun*) {
                other->kind = forge::EventKind::kPullRequest;
              }).model);
  CHECK_FALSE(changed([](forge::Event* other, ForkRun*) {
                other->head_origin = forge::HeadOrigin::kUnknown;
              }).model);
  CHECK_FALSE(changed([](forge::Event* other, ForkRun*) { other->head_sha.clear(); }).model);
  for (const std::vector<std::string>& actors :
       {std::vector<std::string>{}, {"reader"}, {"writer", "stranger"}, {"dependabot[bot]"}}) {
    CHECK_FALSE(changed([&](forge::Event* other, ForkRun*) { other->actors = actors; }).model);
  }
  CHECK_FALSE(judge(event, run, nullptr).model);
  event.actors = {"unreachable"};
  CHECK(JudgeActors(event, fork, kBots, ReadTable, run).error().code == Code::kTemporary);
}

}  // namespace
}  // namespace run
