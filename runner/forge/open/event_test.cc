// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>

#include "forge/event_fields.h"
#include "forge/open/open.h"

namespace forge {
namespace {

const std::string kBase(40, 'a');
const std::string kHead(40, 'b');
const std::string kSha(40, 'c');  // GITHUB_SHA.

using Environment = std::map<std::string, std::string>;

EnvironmentReader Reader(Environment variables) {
  return [variables = std::move(variables)](const std::string& name) {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Environment GitHub(const std::string& name, const Environment& more = {}) {
  Environment variables = {{"GITHUB_ACTIONS", "true"},
                           {"GITHUB_EVENT_NAME", name},
                           {"GITHUB_REPOSITORY", "acme/site"},
                           {"GITHUB_ACTOR", "octocat"},
                           {"GITHUB_REF", "refs/heads/main"},
                           {"GITHUB_SHA", kSha},
                           {"GITHUB_RUN_ID", "77"},
                           {"GITHUB_RUN_ATTEMPT", "2"}};
  for (const auto& [key, value] : more) variables[key] = value;
  return variables;
}

std::string PullRequest(const std::string& head_ref, const std::string& head_repo,
                        const std::string& base_ref = "main") {
  return R"({"action":"opened","repository":{"id":1,"full_name":"acme/site"},"pull_request":{)"
         R"("number":7,"title":"$(id) \u0000 ::error::","base":{"ref":")" +
         base_ref + R"(","sha":")" + kBase +
         R"(","repo":{"id":1,"full_name":"acme/site"}},"head":{"ref":")" + head_ref +
         R"(","sha":")" + kHead + R"(","repo":)" + head_repo + "}}}";
}

constexpr char kSameRepo[] = R"({"id":1,"full_name":"acme/site"})";

Event Read(const Environment& variables, const std::string& payload) {
  Result<Event> event = ParseEvent(Reader(variables), payload);
  if (!event.ok()) FAIL(event.error().what);
  return event.value();
}

TEST_CASE("JobKey tells jobs of one workflow apart, and those of a matrix") {
  Environment variables = GitHub("push", {{"GITHUB_WORKFLOW", "ci"}, {"GITHUB_JOB", "review"}});
  CHECK(Read(variables, "{}").JobKey("") == "ci/review");
  variables["AGENTIC_CI_MATRIX_JOB"] = "2";
  CHECK(Read(variables, "{}").JobKey("") == "ci/review/2");
  CHECK(Read(variables, "{}").JobKey("fix") == "ci/review/2:fix");
  CHECK(Event().JobKey("") == "/");
}

TEST_CASE("A leg of a matrix is named by its values, where the engine gives no number") {
  Environment variables = GitHub("push", {{"GITHUB_WORKFLOW", "ci"}, {"GITHUB_JOB", "review"}});
  const auto leg = [&](const std::string& matrix) {
    variables["AGENTIC_CI_MATRIX"] = matrix;
    return Read(variables, "{}").leg;
  };
  CHECK(leg("{\n  \"node\": 20,\n  \"os\": \"linux\"\n}") == "node: 20, os: linux");
  CHECK(Read(variables, "{}").JobKey("") == "ci/review/node: 20, os: linux");
  CHECK(leg(R"({"with": {"a": [1]}})") == R"(with: {"a":[1]})");
  // Long values: their digest, in which each value counts.
  const std::string one = leg("{\"text\": \"" + std::string(300, 'a') + "\"}");
  CHECK(one.size() == 12);
  CHECK(leg("{\"text\": \"" + std::string(301, 'a') + "\"}") != one);
  for (const char* outside : {"null", "", "{}", "[1]", "{"}) CHECK(leg(outside).empty());
}

TEST_CASE("ReadEvent finds no forge outside continuous integration, whatever else is set") {
  Result<Event> event = ReadEvent(Reader({{"GITHUB_EVENT_PATH", "/nonexistent"}, {"CI", "false"}}));
  REQUIRE(event.ok());
  CHECK(event.value().forge == ForgeKind::kNone);
  CHECK(event.value().kind == EventKind::kNone);
  CHECK(event.value().unread_ci.empty());
}

TEST_CASE("ReadEvent names the continuous integration whose events it does not read") {
  auto unread = [](const Environment& variables) {
    Result<Event> event = ReadEvent(Reader(variables));
    return event.ok() ? event.value().unread_ci : event.error().what;
  };
  CHECK(unread({{"CI", "true"}}) == "CI");
  for (const char* value : {"", "0", "false", "FALSE"}) CHECK(unread({{"CI", value}}).empty());
  CHECK(unread({{"CI", "woodpecker"}}) == "CI");
  CHECK(unread({{"CI", "true"}, {"CIRCLECI", "true"}}) == "CIRCLECI");
  CHECK(unread({{"JENKINS_URL", "http://jenkins/"}}) == "JENKINS_URL");
  // These set no CI.
  CHECK(unread({{"BUILD_NUMBER", "5"}, {"JENKINS_HOME", "/var/jenkins"}}) == "JENKINS_HOME");
  for (const char* name :
       {"bamboo_buildKey", "GO_PIPELINE_NAME", "TASK_ID", "TASKCLUSTER_ROOT_URL", "BUILD_ID",
        "ATC_EXTERNAL_URL", "BUILD_SUBMITTER", "BUILDER_OUTPUT", "BUILD_NUMBER"}) {
    CHECK(unread({{name, "x"}}) == name);
  }
  CHECK(unread({{"GITHUB_ACTIONS", "1"}}) == "GITHUB_ACTIONS");
  // Not GitHub, whatever a job of GitLab's was told.
  CHECK(unread({{"GITLAB_CI", "true"}, {"GITHUB_ACTIONS", "true"}}) == "GITLAB_CI");
}

TEST_CASE("A variable of a CI system counts with any value") {
  auto unread = [](const Environment& variables) {
    Result<Event> event = ReadEvent(Reader(variables));
    if (!event.ok()) return event.error().what;
    CHECK(event.value().forge == ForgeKind::kNone);
    return event.value().unread_ci;
  };
  for (const char* value : {"false", "0", "", "no"}) {
    CAPTURE(value);
    CHECK(unread({{"CI", "false"}, {"GITLAB_CI", value}}) == "GITLAB_CI");
    for (const char* name : {"CI_SERVER", "CI_PIPELINE_ID", "CI_JOB_ID", "CI_PROJECT_ID",
                             "GITHUB_RUN_ID", "CIRCLECI", "JENKINS_URL", "BUILD_NUMBER"}) {
      CHECK(unread({{"CI", "false"}, {name, value}}) == name);
    }
  }
  // A forged event under another's signs.
  for (const char* name : {"CIRCLECI", "JENKINS_HOME", "TF_BUILD", "CI_PIPELINE_ID"}) {
    CHECK(unread({{"GITHUB_ACTIONS", "true"}, {"GITHUB_EVENT_PATH", "/event"}, {name, ""}}) ==
          name);
    CHECK(unread({{"GITEA_ACTIONS", "true"}, {name, "x"}}) == name);
  }
  CHECK(unread({{"GITLAB_CI", "true"}, {"CIRCLECI", "true"}}) == "CIRCLECI");
  CHECK(unread({{"GITLAB_CI", "true"}, {"GITHUB_RUN_ID", "5"}}) == "GITLAB_CI");
  // A workflow may set these for its own purposes.
  for (const char* name : {"JENKINS_URL", "BUILD_NUMBER", "CODEBUILD_BUILD_ID"}) {
    Environment variables = GitHub("push");
    variables.insert({name, "x"});
    CHECK(Read(variables, R"({"ref":"refs/heads/main"})").forge == ForgeKind::kGitHub);
  }
}

TEST_CASE("ReadEvent says which input is missing") {
  CHECK(ReadEvent(Reader({{"GITHUB_ACTIONS", "true"}})).error().code == Code::kSetup);
  Result<Event> event = ReadEvent(
      Reader({{"GITHUB_ACTIONS", "true"}, {"GITHUB_EVENT_PATH", "/nonexistent/event.json"}}));
  CHECK(event.error().code == Code::kNotFound);
  CHECK(event.error().what.find("/nonexistent/event.json") != std::string::npos);
}

TEST_CASE("ParseEvent reads a pull request from the same repository") {
  Event event = Read(GitHub("pull_request"), PullRequest("fix/typo", kSameRepo));
  CHECK(event.forge == ForgeKind::kGitHub);
  CHECK(event.kind == EventKind::kPullRequest);
  CHECK(event.repository == "acme/site");
  CHECK(event.proposal_number == 7);
  CHECK(event.base_ref == "main");
  CHECK(event.base_sha == kBase);
  CHECK(event.head_ref == "fix/typo");
  CHECK(event.head_sha == kHead);
  CHECK(event.head_origin == HeadOrigin::kBase);
  CHECK(event.trusted_sha.empty());
  CHECK(event.trusted_ref == "refs/agentic-ci/base");
  CHECK(event.trusted_fetch ==
        "git fetch --depth=1 https://github.com/acme/site +refs/heads/main:refs/agentic-ci/base");
  CHECK(event.actor == "octocat");
  CHECK(event.api_url == "https://api.github.com");
  CHECK(event.run_url == "https://github.com/acme/site/actions/runs/77/attempts/2");
}

TEST_CASE("ParseEvent takes no base that GitHub's event says for the base branch of today") {
  auto read = [](const std::string& name, Environment more = {}) {
    return Read(GitHub(name, more), PullRequest("fix", kSameRepo));
  };
  for (const char* name : {"pull_request", "pull_request_review", "an_event_of_tomorrow"}) {
    CAPTURE(name);
    for (const char* ref : {"refs/pull/7/merge", "refs/heads/main"}) {
      CHECK(read(name, {{"GITHUB_REF", ref}}).trusted_sha.empty());
      CHECK(read(name, {{"GITHUB_REF", ref}}).trusted_ref == kBaseRef);
    }
  }
  // GITHUB_SHA is the default branch's tip.
  CHECK(read("pull_request_target").trusted_sha == kSha);
  CHECK(read("pull_request_target").trusted_ref.empty());
  Event elsewhere = read("pull_request_target", {{"GITHUB_REF", "refs/pull/7/merge"}});
  CHECK(elsewhere.trusted_sha.empty());
  CHECK(elsewhere.trusted_ref.empty());
  // For a pull request's own ref, it is the merge with the base.
  CHECK(elsewhere.merge_sha == kSha);
  CHECK(read("pull_request_target").merge_sha.empty());
  // Gitea's event says where the branch is.
  for (const char* name : {"pull_request", "pull_request_target"}) {
    CHECK(read(name, {{"GITEA_ACTIONS", "true"}}).trusted_sha == kBase);
    CHECK(read(name, {{"GITEA_ACTIONS", "true"}}).trusted_ref.empty());
  }
  Event unnamed = Read(GitHub("pull_request"), PullRequest("fix", kSameRepo, ""));
  CHECK(unnamed.trusted_sha.empty());
  CHECK(unnamed.trusted_ref.empty());
  Event other = read("pull_request", {{"GITHUB_REPOSITORY_ID", "2"}});
  CHECK(other.head_origin == HeadOrigin::kUnknown);
  CHECK(other.trusted_ref.empty());
}

TEST_CASE("ParseEvent tells a fork by repository id, not by name") {
  // A fork under the very name of the base, as after a transfer.
  CHECK(Read(GitHub("pull_request"), PullRequest("x", R"({"id":2,"full_name":"acme/site"})"))
            .head_origin == HeadOrigin::kFork);
  // The same repository under another name, as after a rename.
  CHECK(Read(GitHub("pull_request"), PullRequest("x", R"({"id":1,"full_name":"old/name"})"))
            .head_origin == HeadOrigin::kBase);
}

TEST_CASE("ParseEvent knows no origin of a head whose repository is deleted or has no id") {
  for (const char* repository : {"null", R"({"full_name":"acme/site"})", R"({"id":"1"})"}) {
    CAPTURE(repository);
    CHECK(Read(GitHub("pull_request_target"), PullRequest("x", repository)).head_origin ==
          HeadOrigin::kUnknown);
  }
}

TEST_CASE("ParseEvent knows no head of a comment on a pull request") {
  Event event =
      Read(GitHub("issue_comment"),
           R"({"issue":{"number":9,"pull_request":{"url":"x"}},"comment":{"body":"/go"}})");
  CHECK(event.kind == EventKind::kIssueComment);
  CHECK(event.proposal_number == 9);
  CHECK(event.head_origin == HeadOrigin::kUnknown);
  CHECK(event.base_ref == "main");
  CHECK(event.trusted_sha == kSha);
  CHECK(event.head_sha.empty());
}

std::string WorkflowRun(const std::string& event, const std::string& head_repository) {
  return R"({"repository":{"id":1,"full_name":"acme/site"},"workflow_run":{"event":")" + event +
         R"(","head_branch":"x","head_sha":")" + kHead + R"(","head_repository":)" +
         head_repository + "}}";
}

TEST_CASE("ParseEvent takes a workflow_run's head from the run it follows, not from GITHUB_SHA") {
  auto read = [](const std::string& event, const std::string& head_repository) {
    return Read(GitHub("workflow_run"), WorkflowRun(event, head_repository));
  };
  Event fork = read("pull_request", R"({"id":2,"full_name":"eve/site"})");
  CHECK(fork.head_origin == HeadOrigin::kFork);
  CHECK(fork.head_repository == "eve/site");
  CHECK(fork.head_sha == kHead);
  CHECK(fork.trusted_sha == kSha);
  // A fork may have the base's very name.
  CHECK(read("pull_request", R"({"id":2,"full_name":"acme/site"})").head_origin ==
        HeadOrigin::kFork);
  CHECK(read("pull_request", "null").head_origin == HeadOrigin::kUnknown);
  CHECK(read("pull_request", kSameRepo).head_origin == HeadOrigin::kBase);
  CHECK(read("push", kSameRepo).head_origin == HeadOrigin::kBase);
  // The run's record has the default branch for a head, whatever the comment was about.
  CHECK(read("issue_comment", kSameRepo).head_origin == HeadOrigin::kUnknown);
}

TEST_CASE("ParseEvent knows the origin of a commit only when it is the base's own") {
  auto origin = [](const std::string& name, const std::string& payload,
                   const Environment& more = {}) {
    return Read(GitHub(name, more), payload).head_origin;
  };
  const std::string other = R"({"head_sha":")" + kHead + R"("}})";
  const std::string own = R"({"head_sha":")" + kSha + R"("}})";
  CHECK(origin("check_run", R"({"check_run":)" + other) == HeadOrigin::kUnknown);
  CHECK(origin("check_run", R"({"check_run":)" + own) == HeadOrigin::kBase);
  CHECK(origin("check_suite", R"({"check_suite":)" + other) == HeadOrigin::kUnknown);
  CHECK(origin("check_suite", R"({"check_suite":)" + own) == HeadOrigin::kBase);
  CHECK(origin("status", R"({"sha":")" + kHead + R"("})") == HeadOrigin::kUnknown);
  CHECK(origin("status", R"({"sha":")" + kSha + R"("})") == HeadOrigin::kBase);
  const std::string deployment = R"({"deployment":{"sha":")" + kSha + R"("}})";
  CHECK(origin("deployment", deployment) == HeadOrigin::kBase);
  // Deployed by hash: GITHUB_SHA may be a fork's.
  CHECK(origin("deployment", deployment, {{"GITHUB_REF", ""}}) == HeadOrigin::kUnknown);
  CHECK(origin("schedule", "{}") == HeadOrigin::kBase);
  CHECK(origin("release", "{}", {{"GITHUB_REF", "refs/tags/v1"}}) == HeadOrigin::kBase);
  CHECK(origin("an_event_of_tomorrow", "{}") == HeadOrigin::kUnknown);
  CHECK(origin("schedule", "{}", {{"GITHUB_REF", "refs/pull/7/merge"}}) == HeadOrigin::kUnknown);
}

TEST_CASE("ParseEvent trusts no commit that GITHUB_REF does not say is a branch's or a tag's") {
  auto trusted = [](const char* ref) {
    return Read(GitHub("repository_dispatch", {{"GITHUB_REF", ref}}), "{}").trusted_sha;
  };
  CHECK(trusted("refs/heads/main") == kSha);
  CHECK(trusted("refs/tags/v1") == kSha);
  CHECK(trusted("refs/pull/7/merge").empty());
  CHECK(trusted("").empty());
}

TEST_CASE("ParseEvent takes a comment on an issue for no pull request") {
  Event event = Read(GitHub("issue_comment"), R"({"issue":{"number":9}})");
  CHECK(event.proposal_number == 0);
  CHECK(event.head_origin == HeadOrigin::kBase);
}

TEST_CASE(
    "ParseEvent reads a push, with nothing before a new branch and nothing after a deleted one") {
  std::string zero(40, '0');
  auto push = [](const std::string& ref, const std::string& before, const std::string& after) {
    return Read(GitHub("push"), R"({"ref":")" + ref + R"(","before":")" + before +
                                    R"(","after":")" + after + R"("})");
  };
  Event event = push("refs/heads/main", kBase, kHead);
  CHECK(event.base_ref == "main");
  CHECK(event.base_sha == kBase);
  CHECK(event.head_sha == kHead);
  CHECK(event.head_origin == HeadOrigin::kBase);
  CHECK(push("refs/heads/new", zero, kHead).base_sha.empty());
  CHECK(push("refs/heads/old", kBase, zero).head_sha.empty());
  CHECK(event.head_tag.empty());
  CHECK(push("refs/tags/v1", kBase, kHead).base_ref.empty());
  CHECK(push("refs/tags/v1", kBase, kHead).head_tag == "refs/tags/v1");
  CHECK(push("refs/tags/a b", kBase, kHead).head_tag.empty());
  CHECK(Read(GitHub("release", {{"GITHUB_REF", "refs/tags/v1"}}), "{}").head_tag == "refs/tags/v1");
}

TEST_CASE("ParseEvent trusts a push to a branch or a tag, and no other") {
  auto push = [](const std::string& ref, const std::string& said) {
    return Read(GitHub("push", {{"GITHUB_REF", ref}}),
                R"({"ref":")" + said + R"(","after":")" + kHead + R"("})");
  };
  for (const char* ref : {"refs/heads/main", "refs/heads/a/b", "refs/tags/v1"}) {
    CHECK(push(ref, ref).head_origin == HeadOrigin::kBase);
    CHECK(push(ref, ref).trusted_sha == kSha);
  }
  for (const char* ref : {"refs/pull/5/head", "refs/pull/5/merge", "refs/merge-requests/5/head",
                          "refs/heads/", "refs/tags/", "refs/heads", "main", ""}) {
    CAPTURE(ref);
    for (const Event& event :
         {push(ref, ref), push(ref, "refs/heads/main"), push("refs/heads/main", ref)}) {
      CHECK(event.head_origin == HeadOrigin::kUnknown);
      CHECK(event.trusted_sha.empty());
    }
  }
}

TEST_CASE("ParseEvent trusts no branch that GitHub made of the pull requests in a merge queue") {
  const std::string queue = "refs/heads/gh-readonly-queue/main/pr-7-" + kBase;
  Event push =
      Read(GitHub("push", {{"GITHUB_REF", queue}}),
           R"({"ref":")" + queue + R"(","before":")" + kBase + R"(","after":")" + kSha + R"("})");
  CHECK(push.head_origin == HeadOrigin::kUnknown);
  CHECK(push.trusted_sha.empty());
  Event created = Read(GitHub("create", {{"GITHUB_REF", queue}}), "{}");
  CHECK(created.head_origin == HeadOrigin::kUnknown);
  CHECK(created.trusted_sha.empty());
  Event group = Read(GitHub("merge_group", {{"GITHUB_REF", queue}}),
                     R"({"merge_group":{"base_ref":"refs/heads/main","base_sha":")" + kBase +
                         R"(","head_ref":")" + queue + R"(","head_sha":")" + kSha + R"("}})");
  CHECK(group.head_origin == HeadOrigin::kBase);
  CHECK(group.trusted_sha == kBase);
}

TEST_CASE("ParseEvent trusts no event of another repository than the job's") {
  auto event = [](const std::string& repository, const std::string& id) {
    return Read(GitHub("push", {{"GITHUB_REPOSITORY_ID", id}}),
                R"({"ref":"refs/heads/main","after":")" + std::string(kHead) +
                    R"(","repository":)" + repository + "}");
  };
  for (const Event& own : {event(R"({"id":1,"full_name":"Acme/Site"})", ""),
                           event(R"({"id":1,"full_name":"old/name"})", "1"), event("{}", "1")}) {
    CHECK(own.head_origin == HeadOrigin::kBase);
    CHECK(own.trusted_sha == kSha);
  }
  for (const Event& other : {event(R"({"id":2,"full_name":"acme/site"})", "1"),
                             event(R"({"id":1,"full_name":"evil/site"})", ""),
                             event(R"({"full_name":"evil/site"})", "1")}) {
    CHECK(other.head_origin == HeadOrigin::kUnknown);
    CHECK(other.trusted_sha.empty());
  }
}

TEST_CASE("ParseEvent trusts the branch that workflow_dispatch names") {
  Event event = Read(GitHub("workflow_dispatch"), R"({"ref":"refs/heads/main","inputs":null})");
  CHECK(event.kind == EventKind::kWorkflowDispatch);
  CHECK(event.base_ref == "main");
  CHECK(event.base_sha == std::string(40, 'c'));
  CHECK(event.head_origin == HeadOrigin::kBase);
}

TEST_CASE(
    "ParseEvent reads a merge group's base from the event, since GITHUB_SHA holds its changes") {
  Event event = Read(GitHub("merge_group"), R"({"merge_group":{"base_ref":"refs/heads/main",)"
                                            R"("base_sha":")" +
                                                kBase + R"(","head_sha":")" + kHead + R"("}})");
  CHECK(event.kind == EventKind::kOther);
  CHECK(event.base_sha == kBase);
  CHECK(event.trusted_sha == kBase);
  CHECK(event.head_sha == kHead);
}

TEST_CASE("ParseEvent names Gitea by its own variables and its run's page by number") {
  for (const char* variable : {"GITEA_ACTIONS", "FORGEJO_ACTIONS"}) {
    Event event =
        Read(GitHub("pull_request", {{variable, "true"},
                                     {"GITHUB_API_URL", "https://git.example.com/api/v1/"},
                                     {"GITHUB_SERVER_URL", "https://git.example.com/"},
                                     {"GITHUB_RUN_NUMBER", "3"}}),
             PullRequest("x", kSameRepo));
    CHECK(event.forge == ForgeKind::kGitea);
    CHECK(event.api_url == "https://git.example.com/api/v1");
    CHECK(event.run_url == "https://git.example.com/acme/site/actions/runs/3");
  }
}

TEST_CASE("ParseEvent names who started this attempt, not who started the first") {
  CHECK(Read(GitHub("push", {{"GITHUB_TRIGGERING_ACTOR", "dependabot[bot]"}}),
             R"({"ref":"refs/heads/main"})")
            .actor == "dependabot[bot]");
}

TEST_CASE("ParseEvent reads the actor of act, and no other with a slash") {
  auto actor = [](const char* name) {
    return ParseEvent(Reader(GitHub("push", {{"GITHUB_TRIGGERING_ACTOR", name}})),
                      R"({"ref":"refs/heads/main"})");
  };
  REQUIRE(actor("nektos/act").ok());
  CHECK(actor("nektos/act").value().actor == "nektos/act");
  CHECK(actor("someone/act").error().code == Code::kInvalid);
}

TEST_CASE("ParseEvent takes the branch names that git takes") {
  for (const char* ref : {"fix(ui)/button", "it's", "a&b", "a!b", "50%-off", "{x}", "$(id)"}) {
    CAPTURE(ref);
    Result<Event> event = ParseEvent(Reader(GitHub("pull_request")), PullRequest(ref, kSameRepo));
    REQUIRE(event.ok());
    CHECK(event.value().head_ref == ref);
  }
}

TEST_CASE("ParseEvent refuses what is no branch name on either side") {
  for (const char* ref : {"a:b", "a b", "-x", "a..b", "x~1"}) {
    CAPTURE(ref);
    Result<Event> head = ParseEvent(Reader(GitHub("pull_request")), PullRequest(ref, kSameRepo));
    CHECK(head.error().code == Code::kRefused);
    Result<Event> base =
        ParseEvent(Reader(GitHub("pull_request")), PullRequest("x", kSameRepo, ref));
    CHECK(base.error().code == Code::kRefused);
  }
}

TEST_CASE("ParseEvent refuses what is no event") {
  auto code = [](const Environment& variables, const std::string& payload) {
    Result<Event> event = ParseEvent(Reader(variables), payload);
    return event.ok() ? Code::kBug : event.error().code;
  };
  CHECK(code(GitHub("pull_request"), "") == Code::kInvalid);
  CHECK(code(GitHub("pull_request"), "[]") == Code::kInvalid);
  CHECK(code(GitHub("pull_request"), "{}") == Code::kInvalid);
  CHECK(code(GitHub("pull_request"), R"({"pull_request":{"number":"7"}})") == Code::kInvalid);
  CHECK(code(GitHub("pull_request"), R"({"pull_request":{"number":-7}})") == Code::kInvalid);
  CHECK(code(GitHub("push"), R"({"after":"xyz"})") == Code::kInvalid);
  CHECK(code(GitHub("push", {{"GITHUB_REPOSITORY", "a/../b"}}), "{}") == Code::kInvalid);
  CHECK(code(GitHub("push", {{"GITHUB_ACTOR", "a\nb"}}), "{}") == Code::kInvalid);
  CHECK(code(GitHub("push", {{"GITHUB_API_URL", "file:///x"}}), "{}") == Code::kInvalid);
  CHECK(code(GitHub("push", {{"GITHUB_API_URL", "https://me@x"}}), "{}") == Code::kInvalid);
  CHECK(code(GitHub("push"), std::string(100'000, '[')) == Code::kInvalid);
}

TEST_CASE("an error about an event shows hostile text harmless and short") {
  Result<Event> event = ParseEvent(Reader(GitHub("push")), R"({"after":"\u001b[2J\n::error::x"})");
  CHECK(event.error().what == "head is not a commit hash: ' : :error::x'");
}

TEST_CASE("ValidRef takes a name as long as a branch's may be") {
  CHECK(ValidRef("fix(ui)/it's"));
  CHECK_FALSE(ValidRef("a b"));
  CHECK(ValidRef(std::string(244, 'a')));
  CHECK_FALSE(ValidRef(std::string(245, 'a')));
}

TEST_CASE("ValidRepository wants exactly an owner and a name") {
  for (const char* repository : {"a/b", "A-1/b.c_d", "o/.github"})
    CHECK(ValidRepository(repository));
  for (const char* repository : {"", "a", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/.", "a b/c",
                                 "a/b?x", "a/b#", "a/%2e%2e"}) {
    CAPTURE(repository);
    CHECK_FALSE(ValidRepository(repository));
  }
}

}  // namespace
}  // namespace forge
