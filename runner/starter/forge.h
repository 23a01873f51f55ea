// SPDX-License-Identifier: Apache-2.0
// The forges that a repository's first files can be for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace starter {

struct StarterRequest;

struct Forge {
  std::string_view name;       // "github": the name of the forge's host has it, too.
  std::string_view mark;       // What a repository has where this forge's CI runs.
  std::string_view host = {};  // A host with another name.
  std::string_view file;       // The workflow or pipeline that is written.
  // Where a pipeline is written instead if the project has one of its own in `file`, which then
  // includes it. Empty where workflows have files of their own.
  std::string_view second_file = {};
  std::string (*render)(const StarterRequest&);  // Returns its content.
  bool of_gitea = false;                         // Its runners are those of Gitea and Forgejo.
  std::string_view proposal = "pull request";
  std::string_view push_event = "pull_request";  // The event of a push to one.
  // Why only a push can start a task, or why a comment cannot. Empty if it can.
  std::string_view push_only_reason = {};
  std::string_view no_command_reason = {};
  // The variable that is "true" in every job of this CI, and the one with the checkout's directory;
  // empty where the workflow's path is in GITHUB_WORKFLOW_REF.
  const char* flag = "";
  const char* checkout = "";
};

// Returns all of them, in the order in which a repository is looked at; the last is the usual one.
std::span<const Forge> Forges();

// Returns their names for a text: "`gitlab`, `github`".
std::string ForgeNames();

// Returns the forge of that name. Fails with kUsage and the nearest one.
Result<const Forge*> ParseForge(std::string_view name);

}  // namespace starter
