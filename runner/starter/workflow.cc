// SPDX-License-Identifier: Apache-2.0
#include "starter/workflow.h"

#include <string_view>

#include "base/sys.h"
#include "base/version.h"

namespace starter {
namespace {

constexpr std::string_view kTitle =
    "# Runs the task of .agentic-ci/config.yml that is for the event.\n";

// Names actions by URL: what a short name leads to is the instance's to say.
bool IsGiteas(const StarterRequest& request) { return request.facts.forge->of_gitea; }

std::string Action(const StarterRequest& request, std::string_view name) {
  return "uses: " + std::string(IsGiteas(request) ? "https://github.com/" : "") + std::string(name);
}

std::string RenderOn(const StarterRequest& request) {
  switch (request.on) {
    case StartOn::kLabel:
      return "  pull_request: { types: [labeled, synchronize] }\n";
    case StartOn::kPush:
      return "  pull_request: { types: [opened, synchronize, reopened, ready_for_review] }\n";
    case StartOn::kCommand:
      break;
  }
  return "  issue_comment: { types: [created] }\n";
}

// Holds on each forge: the event of a label names none on Gitea, and a push has none anywhere.
std::string RenderIf(const StarterRequest& request) {
  constexpr std::string_view kOwnBranch =
      "github.event.pull_request.head.repo.full_name == github.repository";
  std::string condition;
  switch (request.on) {
    case StartOn::kLabel:
      condition =
          "    # The label is given, or a branch that has it is pushed to. Pull requests from "
          "forks get no secrets.\n"
          "    if: ${{ contains(github.event.pull_request.labels.*.name, 'agent') && "
          "(github.event.label.name || 'agent') == 'agent' && ";
      return condition.append(kOwnBranch) + " }}\n";
    case StartOn::kPush:
      condition =
          "    # Pull requests from forks get no secrets.\n"
          "    if: ${{ !github.event.pull_request.draft && ";
      return condition.append(kOwnBranch) + " }}\n";
    case StartOn::kCommand:
      break;
  }
  return "    # Who may start it, and where the head is, the run asks the forge.\n"
         "    if: ${{ github.event.issue.pull_request && "
         "startsWith(github.event.comment.body, '/" +
         TaskOf(request) + "') }}\n";
}

// On the job: a workflow's own group is taken before the job's `if` is looked at, so that any other
// label or comment would cancel the run that is under way.
std::string RenderConcurrency(const StarterRequest& request) {
  const bool comment = request.on == StartOn::kCommand;
  return "    # On the job: a group of the whole workflow would be taken before `if` is looked "
         "at.\n"
         "    concurrency: { group: \"agentic-ci-${{ github.event." +
         std::string(comment ? "issue" : "pull_request") + ".number }}\"" +
         (comment ? "" : ", cancel-in-progress: true") + " }\n";
}

std::string RenderKeepStep(const StarterRequest& request) {
  // Gitea and Forgejo have the service that the third version speaks to.
  std::string_view upload =
      IsGiteas(request)
          ? "actions/upload-artifact@c6a366c94c3e0affe28c06c8df20a878f24da3cf  # v3.2.2"
          : "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02  # v4.6.2";
  return "      - name: Keep the report  # The comment links to it.\n"
         "        if: ${{ always() && steps.agent.outputs.report-dir != '' }}\n"
         "        " +
         Action(request, upload) +
         "\n"
         "        with: { name: agentic-ci-report, path: \"${{ steps.agent.outputs.report-dir }}\" "
         "}\n";
}

std::string RenderSteps(const StarterRequest& request) {
  std::string steps =
      "    steps:\n"
      "      - " +
      Action(request, "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8  # v5.0.0\n") +
      "        with: { persist-credentials: false }\n";
  const std::string& install = request.facts.install_command;
  // The usual image of Gitea's runners has Node.js and little else.
  const bool there =
      !IsGiteas(request) || install.starts_with("npm") || install.starts_with("corepack");
  if (!install.empty() && there) {
    steps += "      - run: " + install + "  # The project's dependencies, for the agent's tests.\n";
  }
  if (HasModel(request)) steps += "      - run: " + request.install + "\n";
  steps += "      - id: agent\n        " +
           Action(request, "OWNER/agentic-ci@COMMIT  # v" + std::string(kVersion)) +
           " (the task is the one for the event in .agentic-ci/config.yml)\n";
  if (HasModel(request)) {
    steps += "        env: { " + request.key_variable + ": \"${{ secrets." + request.key_variable +
             " }}\" }\n";
  }
  // Jobs there run in containers, which give no namespaces.
  steps += IsGiteas(request) ? "        with: { isolation: landlock, post: true }\n"
                             : "        with: { post: true }\n";
  return steps + RenderKeepStep(request);
}

}  // namespace

std::string RenderWorkflow(const StarterRequest& request) {
  return std::string(kTitle) +
         "name: agentic-ci\n"
         "on:\n" +
         RenderOn(request) +
         "permissions: { contents: read, pull-requests: write }\n"
         "jobs:\n"
         "  agent:\n" +
         RenderConcurrency(request) + RenderIf(request) +
         "    runs-on: " + (IsGiteas(request) ? "ubuntu-latest" : "ubuntu-24.04") +
         "\n"
         "    timeout-minutes: 40\n" +
         RenderSteps(request);
}

std::string RenderGitLab(const StarterRequest& request) {
  std::string text(kTitle);
  text +=
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

bool HasPipeline(const std::string& top, const Forge& forge) {
  constexpr size_t kPipelineBytesMax = size_t{1} << 20;
  const std::string file = top + "/" + std::string(forge.file);
  Result<std::string> text = sys::ReadFile(file, kPipelineBytesMax);
  if (!text.ok()) return sys::Exists(file);
  const std::string_view there = text.value();
  return !there.starts_with(kTitle) || !there.substr(kTitle.size()).starts_with("include:");
}

StarterFile PlanCi(const StarterRequest& request) {
  const Forge& forge = *request.facts.forge;
  const bool second = request.has_pipeline && !forge.second_file.empty();
  return {std::string(second ? forge.second_file : forge.file), forge.render(request)};
}

}  // namespace starter
