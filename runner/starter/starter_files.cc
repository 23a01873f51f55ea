// SPDX-License-Identifier: Apache-2.0
#include "starter/starter_files.h"

#include <algorithm>
#include <string_view>

#include "base/version.h"

namespace starter {
namespace {

bool HasModel(const StarterRequest& request) { return request.agent != "command"; }

// A flow sequence; the words are ours, and none needs more than quotes.
std::string FlowList(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    bool plain = word.find_first_of("./") == std::string::npos && word.front() != '-';
    list += (list.empty() ? "" : ", ") + (plain ? word : '"' + word + '"');
  }
  return "[" + list + "]";
}

std::string RenderPolicy() {
  return "# What a run may reach. Read from the base branch: a pull request cannot change it for "
         "itself.\n"
         "# Try it with `agentic-ci policy explain https://host/path`. Every key is in the policy "
         "reference.\n"
         "defaults: minimal  # The agent's model, and this repository's forge for fetching, not "
         "for "
         "pushing.\n"
         "# endpoints:\n"
         "#   - \"api.example.com:443:read-only:rest\"\n";
}

std::string RenderEcosystems(const StarterRequest& request) {
  std::vector<std::string> known;
  for (const std::string& name : request.facts.ecosystems) {
    bool unknown = std::find(request.unknown_here.begin(), request.unknown_here.end(), name) !=
                   request.unknown_here.end();
    if (!unknown) known.push_back(name);
  }
  std::string text;
  if (!known.empty()) {
    text +=
        "\n# Package registries that are open for reading, as the installed tools name them.\n"
        "ecosystems: " +
        FlowList(known) + "\n";
  }
  if (!request.unknown_here.empty()) {
    text +=
        "# Where runs take place on a host with the tools of these, add them to "
        "`ecosystems`: " +
        FlowList(request.unknown_here) + "\n";
  }
  return text;
}

std::string_view EventOf(Forge forge) {
  switch (forge) {
    case Forge::kGitLab:
      return "merge_request_event";
    case Forge::kGitHub:
    case Forge::kGitea:
    case Forge::kForgejo:
      break;
  }
  return "pull_request";
}

std::string RenderWhen(const StarterRequest& request) {
  std::string event(EventOf(request.facts.forge));
  if (!HasModel(request) || request.facts.forge == Forge::kGitLab) {
    return "    when: { events: [" + event + "] }\n";
  }
  return "    when: { events: [" + event + ".labeled], labels: [agent] }\n";
}

std::string RenderConfig(const StarterRequest& request) {
  std::string config =
      "# What agents are asked to do in this repository. Read from the base branch, like the "
      "policy.\n"
      "# `agentic-ci config check` checks this file, `agentic-ci config explain` shows what a run "
      "makes of it.\n"
      "tasks:\n  " +
      TaskOf(request) + ":\n    agent: " + request.agent + "\n";
  if (HasModel(request)) {
    config += "    provider: " + request.provider + "  # The credential is " +
              request.key_variable +
              " of the job; the agent sees a placeholder.\n"
              "    prompt_file: .agentic-ci/review.md\n"
              "    limits: { timeout: 20m, idle_timeout: 10m, max_cost: 5 }\n"
              "    post: [comment, review]\n";
  } else {
    bool known = !request.facts.test_command.empty();
    config += "    command: " +
              FlowList(known ? request.facts.test_command
                             : std::vector<std::string>{"git", "status", "--short"}) +
              "\n    limits: { timeout: 20m }\n    post: [comment]\n";
  }
  return config + RenderWhen(request) + RenderEcosystems(request);
}

std::string RenderReviewPrompt(const StarterRequest& request) {
  std::string prompt =
      "Review pull request #{{number}} of {{repository}}, which merges {{head}} into {{base}}.\n\n"
      "Its title and description:\n\n{{title}}\n{{body}}\n\n"
      "What it changes:\n\n{{diff}}\n\n"
      "Look for mistakes in behaviour, security and tests. Read the code around a change before "
      "you judge it. Report only what\nyou are sure of, each finding with its file and line. Do "
      "not change any file.\n";
  if (!request.facts.test_command.empty()) {
    std::string command;
    for (const std::string& word : request.facts.test_command) {
      command += (command.empty() ? "" : " ") + word;
    }
    prompt += "The tests are run by `" + command + "`.\n";
  }
  return prompt;
}

std::string RenderSteps(const StarterRequest& request) {
  std::string steps =
      "    steps:\n"
      "      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8  # v5.0.0\n"
      "        with: { persist-credentials: false }\n";
  if (HasModel(request)) {
    steps += "      - run: " + request.install + "\n";
  }
  steps += "      - uses: OWNER/agentic-ci@COMMIT  # v" + std::string(kVersion) +
           " (the task is the one for the event in .agentic-ci/config.yml)\n";
  if (HasModel(request)) {
    steps += "        env: { " + request.key_variable + ": \"${{ secrets." + request.key_variable +
             " }}\" }\n";
  }
  return steps + "        with: { post: true }\n";
}

std::string RenderWorkflow(const StarterRequest& request) {
  constexpr std::string_view kOwnBranch =
      "github.event.pull_request.head.repo.full_name == github.repository";
  std::string types = HasModel(request) ? "{ types: [labeled] }" : "{}";
  std::string condition(kOwnBranch);
  if (HasModel(request)) condition = "github.event.label.name == 'agent' && " + condition;
  return "# Runs the task of .agentic-ci/config.yml that is for the event.\n"
         "name: agentic-ci\n"
         "on:\n  pull_request: " +
         types +
         "\n"
         "permissions: { contents: read, pull-requests: write }\n"
         "concurrency: { group: \"agentic-ci-${{ github.event.pull_request.number }}\", "
         "cancel-in-progress: true }\n"
         "jobs:\n"
         "  agent:\n"
         "    # Pull requests from forks get no secrets.\n"
         "    if: " +
         condition +
         "\n"
         "    runs-on: ubuntu-24.04\n"
         "    timeout-minutes: 40\n" +
         RenderSteps(request);
}

std::string RenderGitLab(const StarterRequest& request) {
  std::string text =
      "# Runs the task of .agentic-ci/config.yml that is for the event.\n"
      "include:\n"
      "  - component: $CI_SERVER_FQDN/GROUP/agentic-ci/run@COMMIT  # v" +
      std::string(kVersion) +
      "\n"
      "    inputs:\n"
      "      job-image: IMAGE  # With the agent, git and curl; pin it by digest.\n"
      "      isolation: landlock  # In a container without privileges.\n"
      "  - component: $CI_SERVER_FQDN/GROUP/agentic-ci/post@COMMIT\n"
      "    inputs:\n"
      "      job-image: IMAGE\n";
  if (HasModel(request)) {
    text += "# " + request.key_variable +
            " is a CI/CD variable of the project, masked and hidden, and so is GITLAB_TOKEN for "
            "posting.\n";
  }
  return text;
}

StarterFile PlanCi(const StarterRequest& request) {
  switch (request.facts.forge) {
    case Forge::kGitLab:
      // One that is there is the project's own; it includes ours in a line.
      return {request.facts.has_gitlab_ci ? ".agentic-ci/gitlab-ci.yml" : ".gitlab-ci.yml",
              RenderGitLab(request)};
    case Forge::kGitea:
      return {".gitea/workflows/agentic-ci.yml", RenderWorkflow(request)};
    case Forge::kForgejo:
      return {".forgejo/workflows/agentic-ci.yml", RenderWorkflow(request)};
    case Forge::kGitHub:
      break;
  }
  return {".github/workflows/agentic-ci.yml", RenderWorkflow(request)};
}

}  // namespace

std::string TaskOf(const StarterRequest& request) { return HasModel(request) ? "review" : "check"; }

std::vector<StarterFile> PlanFiles(const StarterRequest& request) {
  std::vector<StarterFile> files = {
      {".agentic-ci/openshell-policy.yml", RenderPolicy()},
      {".agentic-ci/config.yml", RenderConfig(request)},
  };
  if (HasModel(request)) {
    files.push_back({".agentic-ci/review.md", RenderReviewPrompt(request)});
  }
  files.push_back(PlanCi(request));
  return files;
}

}  // namespace starter
