// SPDX-License-Identifier: Apache-2.0
#include "starter/placeholders.h"

#include <catch2/catch.hpp>

#include "starter/starter_files.h"

namespace starter {
namespace {

std::string Found(std::string_view text) {
  std::string found;
  for (const Placeholder& one : FindPlaceholders(text)) {
    found += one.word + " " + std::to_string(one.line) + ":" + std::to_string(one.column) + "\n";
  }
  return found;
}

StarterRequest For(std::string_view forge) {
  StarterRequest request;
  request.facts.forge = ParseForge(forge).value();
  request.agent = "claude-code";
  request.provider = "anthropic";
  request.install = "npm install -g x@1";
  request.key_variable = "KEY";
  return request;
}

}  // namespace

TEST_CASE("A placeholder is found where it stands for something") {
  CHECK(Found("jobs:\n  - uses: OWNER/agentic-ci@COMMIT # v1\n") == "OWNER 2:11\nCOMMIT 2:28\n");
  CHECK(Found("- uses: https://github.com/OWNER/agentic-ci/post@COMMIT") ==
        "OWNER 1:28\nCOMMIT 1:50\n");
  CHECK(Found("- component: $CI_SERVER_FQDN/GROUP/agentic-ci/run@COMMIT") ==
        "GROUP 1:30\nCOMMIT 1:51\n");
  CHECK(Found("    job-image: IMAGE  # pin it") == "IMAGE 1:16\n");
}

TEST_CASE("A word of another meaning is no placeholder") {
  for (const char* text :
       {"", "# uses: OWNER/agentic-ci@COMMIT", "- uses: acme/agentic-ci@0123 # OWNER, COMMIT",
        "env: { OWNER: x, IMAGE: y, COMMIT: z }", "- uses: MYOWNER/agentic-ci@main",
        "image: IMAGES/x", "- uses: OWNER/other@COMMIT"}) {
    CAPTURE(text);
    CHECK(Found(text).empty());
  }
}

TEST_CASE("A release leaves no placeholder but a job's image") {
  for (const char* forge : {"github", "gitea", "forgejo", "gitlab"}) {
    const StarterFile file = PlanFiles(For(forge)).back();
    CHECK_FALSE(FindPlaceholders(file.content).empty());
    const std::string filled = FillRelease(file.content, "acme/agentic-ci", "c0ffee");
    for (const Placeholder& left : FindPlaceholders(filled)) CHECK(left.word == "IMAGE");
    CHECK(filled.find("acme/agentic-ci") != std::string::npos);
    CHECK(filled.find("@c0ffee") != std::string::npos);
  }
}

TEST_CASE("What a run begins on is in the workflow and in the configuration") {
  struct Case {
    StartOn on;
    std::vector<std::string> texts;
  };
  const std::vector<Case> cases = {
      {StartOn::kLabel, {"types: [labeled, synchronize]", "pull_request.synchronize"}},
      {StartOn::kPush, {"types: [opened, synchronize,", "when: { events: [pull_request] }"}},
      {StartOn::kCommand, {"issue_comment: { types: [created] }", "commands: [/review]"}},
  };
  for (const Case& one : cases) {
    StarterRequest request = For("github");
    request.on = one.on;
    std::string all;
    for (const StarterFile& file : PlanFiles(request)) all += file.content;
    for (const std::string& text : one.texts) {
      CAPTURE(text);
      CHECK(all.find(text) != std::string::npos);
    }
  }
}

TEST_CASE("Gitea's workflow takes labels of its runners, actions by URL, and a container's tier") {
  const std::string gitea = PlanFiles(For("gitea")).back().content;
  for (const char* text : {"runs-on: ubuntu-latest", "isolation: landlock",
                           "uses: https://github.com/actions/checkout@",
                           "uses: https://github.com/OWNER/agentic-ci@COMMIT"}) {
    CAPTURE(text);
    CHECK(gitea.find(text) != std::string::npos);
  }
  CHECK(gitea.find("uses: actions/") == std::string::npos);
}

}  // namespace starter
