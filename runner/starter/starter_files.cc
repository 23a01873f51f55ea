// SPDX-License-Identifier: Apache-2.0
#include "starter/starter_files.h"

#include <algorithm>
#include <utility>

#include "codec/text/hex.h"
#include "starter/placeholders.h"
#include "starter/workflow.h"

namespace starter {
namespace {

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
         "#   - \"api.example.com:443:read-only:rest\"\n"
         "# Once the model may have read a stranger's text (an issue, a page), nothing may be "
         "changed "
         "elsewhere.\n"
         "# To keep a host as it is: `stays: [api.example.com]`.\n"
         "after_untrusted: {closes: [writes, hosted_tools]}\n";
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

std::string RenderWhen(const StarterRequest& request) {
  switch (request.on) {
    case StartOn::kLabel:
      return "    when: { events: [pull_request.labeled, pull_request.synchronize], "
             "labels: [agent] }\n";
    case StartOn::kPush:
      return "    when: { events: [" + std::string(request.facts.forge->push_event) + "] }\n";
    case StartOn::kCommand:
      break;
  }
  return "    when: { events: [issue_comment], commands: [/" + TaskOf(request) + "] }\n";
}

// Commented out: the ids are made in the provider's console first.
std::string RenderIdentity(const StarterRequest& request) {
  if (request.identity.empty() || request.facts.forge->of_gitea) return "";
  std::string text =
      "\n# Without " + request.key_variable +
      ": a job proves what it is, and gets a credential for minutes. The steps are in\n"
      "# docs/reference/identity.md of agentic-ci.\n"
      "# providers:\n#   " +
      request.provider + ":\n#     identity:\n";
  for (const std::string& line : request.identity) text += "#       " + line + "\n";
  return text + "\n";
}

std::string RenderConfig(const StarterRequest& request) {
  std::string config =
      "# What agents are asked to do in this repository. Read from the base branch, like the "
      "policy.\n"
      "# `agentic-ci config check` checks this file, `agentic-ci config explain` shows what a run "
      "makes of it.\n" +
      RenderIdentity(request) + "tasks:\n  " + TaskOf(request) + ":\n    agent: " + request.agent +
      "\n";
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
      "Review pull request #{{number}} of {{repository}}, which is to be merged into {{base}}.\n\n"
      "Its title and description:\n\n{{title}}\n{{body}}\n\n"
      "What it changes:\n\n{{diff}}\n\n"
      "Look for mistakes in behaviour, security and tests. Read the code around a change before "
      "you judge it. Report only what\nyou are sure of, each finding with its file and line. Do "
      "not change any file.\n";
  if (request.on == StartOn::kCommand) {
    prompt += "It was asked for with these words:\n\n{{comment}}\n";
  }
  if (!request.facts.test_command.empty()) {
    std::string command;
    for (const std::string& word : request.facts.test_command) {
      command += (command.empty() ? "" : " ") + word;
    }
    prompt += "The tests are run by `" + command + "`.\n";
  }
  return prompt;
}

}  // namespace

bool HasModel(const StarterRequest& request) { return request.agent != "command"; }

Result<StartOn> ParseStartOn(std::string_view name, const Forge& forge) {
  StartOn on = StartOn::kPush;
  if (name == "label") {
    on = StartOn::kLabel;
  } else if (name == "command") {
    on = StartOn::kCommand;
  } else if (name != "push") {
    return Error{Code::kUsage, "--on is one of label, push, command", "--on push"};
  }
  if (on == StartOn::kCommand && !forge.no_command_reason.empty()) {
    return Error{Code::kUsage, std::string(forge.no_command_reason), "--on label"};
  }
  if (on != StartOn::kPush && !forge.push_only_reason.empty()) {
    return Error{Code::kUsage, std::string(forge.push_only_reason), "--on push"};
  }
  return on;
}

Status TakeRelease(std::string_view release, StarterRequest* request) {
  if (release.empty()) return Ok();
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  const size_t at = std::min(release.find('@'), release.size());
  const std::string_view path = release.substr(0, at);
  const std::string_view commit = release.substr(std::min(at + 1, release.size()));
  const bool project = path.ends_with("/agentic-ci") && !path.starts_with('/') &&
                       path.find("//") == std::string_view::npos &&
                       path.find("..") == std::string_view::npos &&
                       path.find_first_not_of(kPlain) == std::string_view::npos;
  if (!project || !codec::IsObjectId(commit)) {
    return Error{Code::kUsage, "--release is not a project called agentic-ci and a whole commit",
                 "--release OWNER/agentic-ci@0123456789abcdef0123456789abcdef01234567"};
  }
  request->release_path = std::string(path);
  request->release_commit = std::string(commit);
  return Ok();
}

std::string DescribeStart(const StarterRequest& request) {
  switch (request.on) {
    case StartOn::kLabel:
      return "when a pull request is given the label agent, and on each push while it has it";
    case StartOn::kPush:
      return "on each push to a " + std::string(request.facts.forge->proposal);
    case StartOn::kCommand:
      break;
  }
  return "on a comment that begins with /" + TaskOf(request) + ", by one who may write";
}

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
  if (!request.release_path.empty()) {
    std::string& content = files.back().content;
    content = FillRelease(std::move(content), request.release_path, request.release_commit);
  }
  return files;
}

}  // namespace starter
