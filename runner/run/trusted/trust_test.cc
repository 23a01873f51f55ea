// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/trust.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "change/repository.h"
#include "change/test_tree.h"

using forge::HeadOrigin;

namespace {

forge::Event Event(const std::string& name, HeadOrigin origin, int64_t number = 0) {
  forge::Event event;
  event.forge = forge::ForgeKind::kGitHub;
  event.name = name;
  event.head_origin = origin;
  event.proposal_number = number;
  return event;
}

forge::Event UnreadCi() {
  forge::Event event;
  event.unread_ci = "CIRCLECI";
  return event;
}

}  // namespace

TEST_CASE("JudgeTrust gives a terminal trust, and an event whose head is the base's own") {
  CHECK(run::JudgeTrust(forge::Event{}).trusted);
  CHECK(run::JudgeTrust(Event("pull_request", HeadOrigin::kBase, 7)).trusted);
  CHECK_FALSE(run::JudgeTrust(Event("pull_request", HeadOrigin::kFork, 7)).trusted);
  CHECK_FALSE(run::JudgeTrust(Event("workflow_run", HeadOrigin::kFork)).trusted);
  CHECK_FALSE(run::JudgeTrust(Event("issue_comment", HeadOrigin::kUnknown, 7)).trusted);
  CHECK_FALSE(run::JudgeTrust(UnreadCi()).trusted);
}

TEST_CASE("JudgeTrust says what is known and what is not") {
  CHECK(run::JudgeTrust(Event("pull_request", HeadOrigin::kFork, 7)).reason ==
        "the pull request comes from a fork");
  CHECK(run::JudgeTrust(Event("workflow_run", HeadOrigin::kFork)).reason ==
        "the head of this workflow_run is in another repository");
  CHECK(run::JudgeTrust(Event("issue_comment", HeadOrigin::kUnknown, 7)).reason ==
        "the issue_comment event does not say which repository the pull request's head is in");
}

TEST_CASE("JudgeTrust speaks of merge requests on GitLab") {
  forge::Event event = Event("merge_request_event", HeadOrigin::kFork, 7);
  event.forge = forge::ForgeKind::kGitLab;
  CHECK_FALSE(run::JudgeTrust(event).trusted);
  CHECK(run::JudgeTrust(event).reason == "the merge request comes from a fork");
  event.head_origin = HeadOrigin::kUnknown;
  CHECK_FALSE(run::JudgeTrust(event).trusted);
  event.head_origin = HeadOrigin::kBase;
  CHECK(run::JudgeTrust(event).trusted);
}

TEST_CASE("JudgeTrust trusts no run on a forge that says nothing of who started it") {
  for (const HeadOrigin origin : {HeadOrigin::kBase, HeadOrigin::kFork}) {
    forge::Event event = Event("push", origin);
    event.forge = forge::ForgeKind::kCount;  // A kind without a row.
    CHECK_FALSE(run::JudgeTrust(event).trusted);
  }
}

TEST_CASE("FindTrustedRef takes the ref that a job fetched where there is no commit to name") {
  forge::Event event = Event("merge_request_event", HeadOrigin::kBase, 7);
  event.trusted_ref = "refs/agentic-ci/base";
  event.trusted_fetch = "git fetch";
  CHECK(run::FindTrustedRef(event, "").value().ref == "refs/agentic-ci/base");
  CHECK(run::FindTrustedRef(event, "").value().fetch == "git fetch");
  CHECK(run::FindTrustedRef(event, "release").value().fetch.empty());
  event.trusted_sha = std::string(40, 'a');
  CHECK(run::FindTrustedRef(event, "").value().ref == event.trusted_sha);
}

TEST_CASE("FindTrustedRef takes the base's commit in every event, and HEAD at a terminal alone") {
  forge::Event event = Event("workflow_run", HeadOrigin::kFork);
  event.head_sha = std::string(40, 'b');
  event.trusted_sha = std::string(40, 'a');
  CHECK(run::FindTrustedRef(event, "").value().ref == event.trusted_sha);
  CHECK_FALSE(run::FindTrustedRef(event, "").value().assumed);
  CHECK(run::FindTrustedRef(event, "release").value().ref == "release");

  event.trusted_sha.clear();
  CHECK(run::FindTrustedRef(event, "").error().code == Code::kSetup);
  CHECK(run::FindTrustedRef(event, "release").value().ref == "release");

  CHECK(run::FindTrustedRef(forge::Event{}, "").value().ref == "HEAD");
  CHECK(run::FindTrustedRef(forge::Event{}, "").value().assumed);
  CHECK_FALSE(run::FindTrustedRef(forge::Event{}, "HEAD").value().assumed);
}

TEST_CASE("FindTrustedRef takes no ref that the pull request itself has named") {
  forge::Event event = Event("pull_request", HeadOrigin::kBase, 7);
  event.base_ref = "main";
  event.head_ref = "origin/main";
  event.head_sha = std::string(40, 'b');
  for (const char* ref :
       {"origin/main", "refs/heads/origin/main", "refs/remotes/origin/origin/main"}) {
    CAPTURE(ref);
    CHECK(run::FindTrustedRef(event, ref).error().code == Code::kRefused);
  }
  using Refused = std::vector<std::string>;
  CHECK(run::FindTrustedRef(event, "refs/remotes/origin/main").value().refused ==
        Refused{event.head_sha});
  event.head_ref = run::kWorktree;
  CHECK(run::FindTrustedRef(event, run::kWorktree).value().ref == run::kWorktree);
  event.head_ref = "fix";
  for (const char* ref : {"fix", "origin/fix", "refs/heads/fix", "refs/remotes/origin/fix",
                          "pull/7/head", "refs/remotes/pull/7/merge", "refs/pull/8/merge"}) {
    CAPTURE(ref);
    CHECK(run::FindTrustedRef(event, ref).error().code == Code::kRefused);
  }
  event.merge_sha = std::string(40, 'c');
  CHECK(run::FindTrustedRef(event, "main").value().refused ==
        Refused{event.head_sha, event.merge_sha});

  forge::Event push = Event("push", HeadOrigin::kBase);
  push.head_ref = "main";
  push.head_sha = std::string(40, 'b');
  CHECK(run::FindTrustedRef(push, "main").value().refused.empty());
}

TEST_CASE("FindTrustedRef takes the base's branch of the name that a fork's has") {
  forge::Event event = Event("pull_request", HeadOrigin::kFork, 7);
  event.base_ref = "develop";
  event.head_ref = "main";
  event.head_sha = std::string(40, 'b');
  for (const char* ref : {"main", "origin/main", "refs/remotes/origin/main"}) {
    CAPTURE(ref);
    CHECK(run::FindTrustedRef(event, ref).ok());
    event.head_origin = HeadOrigin::kBase;
    CHECK(CodeOf(run::FindTrustedRef(event, ref)) == Code::kRefused);
    event.head_origin = HeadOrigin::kFork;
  }
  CHECK(CodeOf(run::FindTrustedRef(event, "refs/remotes/pull/7/merge")) == Code::kRefused);
}

TEST_CASE("ReadTrustedFile reads nothing at the commit that a pull request proposes") {
  change::TestTree tree;
  tree.Write("f", "theirs");
  tree.Commit({"f"});
  change::Repository repository = change::Repository::Open(tree.root()).value();
  const std::string head = repository.ResolveCommit("HEAD").value();
  auto read = [&](const std::string& ref, const std::string& refused) {
    return run::ReadTrustedFile(&repository, tree.root(), {ref, false, {}, {refused}}, "f", 10);
  };
  CHECK(read("HEAD", head).error().code == Code::kRefused);
  CHECK(read(head, head).error().code == Code::kRefused);
  CHECK(read("HEAD", std::string(40, 'a')).value().text == "theirs");
  CHECK(read("HEAD", "").value().text == "theirs");
  tree.Commit({"f"});
  CHECK(read("HEAD", head).error().code == Code::kRefused);
  // A shallow checkout has the merge alone.
  tree.Write(".git/shallow", repository.ResolveCommit("HEAD").value() + "\n");
  change::Repository shallow = change::Repository::Open(tree.root()).value();
  CHECK(run::ReadTrustedFile(&shallow, tree.root(), {"HEAD", false, {}, {head}}, "f", 10)
            .error()
            .code == Code::kRefused);
  tree.Commit({"f"});
  CHECK(read("HEAD", head).value().text == "theirs");
  CHECK(read(run::kWorktree, head).value().text == "theirs");
}

TEST_CASE("FindTrustedRef wants to be told in a continuous integration that is not read") {
  CHECK(run::FindTrustedRef(UnreadCi(), "").error().code == Code::kSetup);
  CHECK(run::FindTrustedRef(UnreadCi(), "main").value().ref == "main");
}
