// SPDX-License-Identifier: Apache-2.0
#include "starter/forge.h"

#include "codec/text/nearest.h"
#include "starter/workflow.h"

namespace starter {
namespace {

constexpr std::string_view kNoAsking =
    "on Gitea and Forgejo, a job cannot ask who may write, and anyone may comment";

constexpr Forge kForges[] = {
    {.name = "gitlab",
     .mark = ".gitlab-ci.yml",
     .file = ".gitlab-ci.yml",
     .second_file = ".agentic-ci/gitlab-ci.yml",
     .render = RenderGitLab,
     .proposal = "merge request",
     .push_event = "merge_request_event",
     .push_only_reason = "on GitLab, neither a label nor a comment starts a pipeline",
     .flag = "GITLAB_CI",
     .checkout = "CI_PROJECT_DIR"},
    {.name = "forgejo",
     .mark = ".forgejo/",
     .host = "codeberg.org",
     .file = ".forgejo/workflows/agentic-ci.yml",
     .render = RenderWorkflow,
     .of_gitea = true,
     .no_command_reason = kNoAsking},
    {.name = "gitea",
     .mark = ".gitea/",
     .file = ".gitea/workflows/agentic-ci.yml",
     .render = RenderWorkflow,
     .of_gitea = true,
     .no_command_reason = kNoAsking},
    {.name = "github",
     .mark = ".github/workflows/",
     .file = ".github/workflows/agentic-ci.yml",
     .render = RenderWorkflow},
};

}  // namespace

std::span<const Forge> Forges() { return kForges; }

std::string ForgeNames() {
  std::string names;
  for (const Forge& forge : kForges) {
    names += (names.empty() ? "`" : ", `") + std::string(forge.name) + "`";
  }
  return names;
}

Result<const Forge*> ParseForge(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Forge& forge : kForges) {
    if (forge.name == name) return &forge;
    names.push_back(forge.name);
  }
  std::string nearest = codec::NearestName(name, names);
  return Error{Code::kUsage, "no forge is called '" + std::string(name) + "'",
               nearest.empty() ? "--forge github" : "--forge " + nearest};
}

}  // namespace starter
