// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>

#include "forge/event_fields.h"
#include "forge/open/open.h"

namespace forge {
namespace {

const std::string kDiffBase(40, 'a');
const std::string kHead(40, 'b');
const std::string kTarget(40, 'c');
const std::string kMerge(40, 'd');

using Environment = std::map<std::string, std::string>;

Result<Event> Parse(const Environment& variables) {
  return ParseEvent(
      [&variables](const std::string& name) {
        auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      "");
}

Event Read(const Environment& variables) {
  Result<Event> event = Parse(variables);
  if (!event.ok()) FAIL(event.error().what);
  return event.value();
}

// Returns the variables with `more`; one with an empty value is there all the same.
Environment With(Environment variables, const Environment& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Environment Job(const std::string& source, const Environment& more = {}) {
  return With({{"GITLAB_CI", "true"},
               {"CI", "true"},
               {"CI_API_V4_URL", "https://gitlab.example:8443/api/v4/"},
               {"CI_COMMIT_SHA", kHead},
               {"CI_CONFIG_PATH", "ci/main.yml@acme/ci"},
               {"CI_DEFAULT_BRANCH", "main"},
               {"CI_JOB_NAME", "review: [codex]"},
               {"CI_PIPELINE_SOURCE", source},
               {"CI_PIPELINE_URL", "https://gitlab.example:8443/acme/web/site/-/pipelines/77"},
               {"CI_PROJECT_ID", "21"},
               {"CI_PROJECT_PATH", "acme/web/site"},
               {"CI_SERVER_URL", "https://gitlab.example:8443"},
               {"GITLAB_USER_LOGIN", "project_21_bot_0a1b"}},
              more);
}

// A merge request of project 21 to itself, as its own pipeline sees it.
Environment MergeRequest(const Environment& more = {}) {
  return With(Job("merge_request_event",
                  {{"CI_MERGE_REQUEST_DIFF_BASE_SHA", kDiffBase},
                   {"CI_MERGE_REQUEST_IID", "7"},
                   {"CI_MERGE_REQUEST_PROJECT_ID", "21"},
                   {"CI_MERGE_REQUEST_PROJECT_PATH", "acme/web/site"},
                   {"CI_MERGE_REQUEST_PROJECT_URL", "https://gitlab.example:8443/acme/web/site"},
                   {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "fix/typo"},
                   {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "21"},
                   {"CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "acme/web/site"},
                   {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "release/1"}}),
              more);
}

TEST_CASE("ReadGitLabEvent reads a merge request and takes its policy from the target branch") {
  Event event = Read(MergeRequest());
  CHECK(event.forge == ForgeKind::kGitLab);
  CHECK(event.kind == EventKind::kPullRequest);
  CHECK(event.name == "merge_request_event");
  CHECK(event.repository == "acme/web/site");
  CHECK(event.project_id == 21);
  CHECK(event.proposal_number == 7);
  CHECK(event.base_ref == "release/1");
  CHECK(event.base_sha == kDiffBase);
  CHECK(event.head_ref == "fix/typo");
  CHECK(event.head_sha == kHead);
  CHECK(event.head_origin == HeadOrigin::kBase);
  CHECK(event.trusted_sha.empty());
  CHECK(event.trusted_ref == "refs/agentic-ci/base");
  CHECK(event.trusted_fetch ==
        "git fetch --depth=1 origin +refs/heads/release/1:refs/agentic-ci/base");
  CHECK(event.actor == "project_21_bot_0a1b");
  CHECK(event.api_url == "https://gitlab.example:8443/api/v4");
  CHECK(event.run_url == "https://gitlab.example:8443/acme/web/site/-/pipelines/77");
  CHECK(event.workflow == "ci/main.yml@acme/ci");
  CHECK(event.job == "review: [codex]");
}

TEST_CASE("ReadGitLabEvent takes a merged result's head from the source branch, not the merge") {
  Event event = Read(MergeRequest({{"CI_COMMIT_SHA", kMerge},
                                   {"CI_MERGE_REQUEST_EVENT_TYPE", "merged_result"},
                                   {"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", kHead},
                                   {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA", kTarget}}));
  CHECK(event.merge_sha == kMerge);
  CHECK(event.head_sha == kHead);
  CHECK(event.base_sha == kTarget);
  CHECK(event.trusted_sha.empty());
  CHECK(event.trusted_ref == kBaseRef);
}

TEST_CASE("ReadGitLabEvent tells a fork by project id, in whichever project the pipeline runs") {
  const Environment fork = {{"CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "99"},
                            {"CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "eve/site"}};
  Event in_target = Read(MergeRequest(fork));
  CHECK(in_target.head_origin == HeadOrigin::kFork);
  CHECK(in_target.head_repository == "eve/site");
  Event in_fork =
      Read(MergeRequest(With(fork, {{"CI_PROJECT_ID", "99"}, {"CI_PROJECT_PATH", "eve/site"}})));
  CHECK(in_fork.head_origin == HeadOrigin::kFork);
  CHECK(in_fork.repository == "acme/web/site");
  CHECK(in_fork.project_id == 21);
  CHECK(in_fork.trusted_fetch ==
        "git fetch --depth=1 https://gitlab.example:8443/acme/web/site.git "
        "+refs/heads/release/1:refs/agentic-ci/base");
  // A fork under the very path of the target, as after a transfer.
  CHECK(Read(MergeRequest({{"CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "99"}})).head_origin ==
        HeadOrigin::kFork);
}

TEST_CASE("ReadGitLabEvent knows no origin where an id is missing or does not fit") {
  for (const char* name : {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "CI_MERGE_REQUEST_PROJECT_ID"}) {
    for (const char* value : {"", "0", "-21", "21 ", "0x15", "99999999999999999999", "$ID"}) {
      CAPTURE(name, value);
      CHECK(Read(MergeRequest({{name, value}})).head_origin == HeadOrigin::kUnknown);
    }
  }
  // A third project runs the pipeline.
  CHECK(Read(MergeRequest({{"CI_PROJECT_ID", "5"}})).head_origin == HeadOrigin::kUnknown);
}

TEST_CASE("ReadGitLabEvent reads a child pipeline of a merge request as the merge request's") {
  Event event = Read(MergeRequest({{"CI_PIPELINE_SOURCE", "parent_pipeline"},
                                   {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "99"},
                                   {"CI_COMMIT_BRANCH", "main"},
                                   {"CI_COMMIT_REF_PROTECTED", "true"}}));
  CHECK(event.head_origin == HeadOrigin::kFork);
  CHECK(event.trusted_sha.empty());
}

TEST_CASE("ReadGitLabEvent reads no merge request away, whatever its variables are set to") {
  const Environment branch = {{"CI_PIPELINE_SOURCE", "push"},
                              {"CI_COMMIT_BRANCH", "main"},
                              {"CI_COMMIT_REF_PROTECTED", "true"}};
  CHECK(Read(Job("push", branch)).trusted_sha == kHead);
  // One of them left over would do.
  for (const auto& [name, value] : MergeRequest()) {
    if (!name.starts_with("CI_MERGE_REQUEST_") || name.ends_with("_SOURCE_PROJECT_PATH")) continue;
    CAPTURE(name);
    CHECK_FALSE(Parse(With(Job("push", branch), {{name, ""}})).ok());
  }
  Environment emptied = With(MergeRequest(), branch);
  for (auto& [name, value] : emptied) {
    if (name.starts_with("CI_MERGE_REQUEST_")) value.clear();
  }
  CHECK(Parse(emptied).error().code == Code::kInvalid);
  emptied["CI_MERGE_REQUEST_IID"] = "7";
  emptied["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"] = "main";
  emptied["CI_MERGE_REQUEST_PROJECT_PATH"] = "acme/web/site";
  Event event = Read(emptied);
  CHECK(event.kind == EventKind::kPullRequest);
  CHECK(event.trusted_sha.empty());
}

TEST_CASE("ReadGitLabEvent trusts the commit of a protected ref and of the default branch alone") {
  struct Row {
    const char* branch;
    const char* tag;
    const char* is_protected;
    bool own_commit;
  };
  for (const Row& row : {Row{"main", "", "", true}, Row{"main", "", "true", true},
                         Row{"release/1", "", "true", true}, Row{"", "v1", "true", true},
                         Row{"fix", "", "", false}, Row{"fix", "", "false", false},
                         Row{"fix", "", "TRUE", false}, Row{"", "main", "", false}}) {
    for (const char* source : {"push", "schedule", "web", "api", "trigger", "chat", "webide",
                               "pipeline", "parent_pipeline"}) {
      CAPTURE(row.branch, row.tag, row.is_protected, source);
      Event event = Read(Job(source, {{"CI_COMMIT_BRANCH", row.branch},
                                      {"CI_COMMIT_TAG", row.tag},
                                      {"CI_COMMIT_REF_PROTECTED", row.is_protected}}));
      CHECK(event.head_origin == HeadOrigin::kBase);
      CHECK(event.trusted_sha == (row.own_commit ? kHead : ""));
      CHECK(event.trusted_ref == (row.own_commit ? "" : "refs/agentic-ci/base"));
      CHECK(event.proposal_number == 0);
    }
  }
}

TEST_CASE("ReadGitLabEvent names no trusted commit for a source or a ref that it does not know") {
  for (const char* source : {"external_pull_request_event", "external", "ondemand_dast_scan",
                             "security_orchestration_policy", "Push", "something_new"}) {
    CAPTURE(source);
    Event event =
        Read(Job(source, {{"CI_COMMIT_BRANCH", "main"}, {"CI_COMMIT_REF_PROTECTED", "true"}}));
    CHECK(event.head_origin == HeadOrigin::kUnknown);
    CHECK(event.trusted_sha + event.trusted_ref == "");
  }
  Event nameless = Read(Job("push", {{"CI_COMMIT_REF_PROTECTED", "true"}}));
  CHECK(nameless.head_origin == HeadOrigin::kUnknown);
  CHECK(nameless.trusted_sha + nameless.trusted_ref == "");
  // No default branch is known: there is nothing to fetch.
  Event bare = Read(Job("push", {{"CI_COMMIT_BRANCH", "fix"}, {"CI_DEFAULT_BRANCH", ""}}));
  CHECK(bare.trusted_sha + bare.trusted_ref == "");
}

TEST_CASE("ReadGitLabEvent gives a push its predecessor, and a new branch none") {
  auto base = [](const std::string& source, const std::string& before) {
    return Read(Job(source, {{"CI_COMMIT_BRANCH", "main"}, {"CI_COMMIT_BEFORE_SHA", before}}))
        .base_sha;
  };
  CHECK(base("push", kTarget) == kTarget);
  CHECK(base("push", std::string(40, '0')).empty());
  CHECK(base("schedule", std::string(40, '0')) == kHead);
}

TEST_CASE("ReadGitLabEvent says which variable is missing") {
  for (const char* name : {"CI_API_V4_URL", "CI_COMMIT_SHA", "CI_PIPELINE_SOURCE", "CI_PROJECT_ID",
                           "CI_PROJECT_PATH", "CI_SERVER_URL"}) {
    Error error = Parse(MergeRequest({{name, ""}})).error();
    CHECK(error.code == Code::kSetup);
    CHECK(error.what == "GITLAB_CI is set, but " + std::string(name) + " is not");
  }
}

TEST_CASE("ReadGitLabEvent refuses what is malformed or hostile") {
  for (const char* name : {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
                           "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_DEFAULT_BRANCH"}) {
    for (const char* ref : {"-x", "a..b", "a b", "a~1", "a\nb", "a:refs/heads/b"}) {
      CAPTURE(name, ref);
      CHECK(Parse(MergeRequest({{name, ref}})).error().code == Code::kRefused);
    }
  }
  for (const Environment& wrong : {Environment{{"CI_MERGE_REQUEST_IID", "7x"}},
                                   {{"CI_MERGE_REQUEST_IID", ""}},
                                   {{"CI_MERGE_REQUEST_IID", "-7"}},
                                   {{"CI_MERGE_REQUEST_TARGET_BRANCH_NAME", ""}},
                                   {{"CI_COMMIT_SHA", "main"}},
                                   {{"CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD~1"}},
                                   {{"CI_MERGE_REQUEST_PROJECT_PATH", "site"}},
                                   {{"CI_MERGE_REQUEST_PROJECT_PATH", ""}},
                                   {{"CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "a/../b"}},
                                   {{"CI_API_V4_URL", "file:///etc"}},
                                   {{"GITLAB_USER_LOGIN", "a b"}}}) {
    CAPTURE(wrong.begin()->first, wrong.begin()->second);
    CHECK(Parse(MergeRequest(wrong)).error().code == Code::kInvalid);
  }
}

TEST_CASE("A job of GitLab's is one only while nothing says that it is GitHub's or Gitea's") {
  for (const char* name : {"GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS"}) {
    Event event = Read(MergeRequest({{name, "true"}}));
    CHECK(event.forge == ForgeKind::kNone);
    CHECK(event.unread_ci == "GITLAB_CI");
  }
  CHECK(Read(MergeRequest({{"GITLAB_CI", "1"}})).unread_ci == "GITLAB_CI");
  // A job's own YAML can set it to anything.
  CHECK(Read(MergeRequest({{"GITHUB_ACTIONS", "false"}})).unread_ci == "GITLAB_CI");
}

TEST_CASE("ValidProject takes a path below groups, and nothing that leads elsewhere") {
  for (const char* path : {"a/b", "acme/web/site", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u"}) {
    CHECK(ValidProject(path));
  }
  for (const char* path : {"", "a", "/a", "a/", "a//b", "a/../b", "a/./b", "a/b c", "a/b%2f",
                           "a/b?x", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v"}) {
    CAPTURE(path);
    CHECK_FALSE(ValidProject(path));
  }
}

}  // namespace
}  // namespace forge
