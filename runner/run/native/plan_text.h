// SPDX-License-Identifier: Apache-2.0
// Renders what `--plan-only` prints, for people.
#pragma once

#include <string>
#include <string_view>

#include "policy/model/policy.h"
#include "sandbox/plan.h"

namespace run {

// Returns one line of a plan. Hosts, paths and the command come from the repository: a terminal or
// a CI log obeys nothing in `text`.
std::string PlanLine(std::string_view what, std::string_view text);

// Returns such a line for each of `text`, none for an empty one.
std::string PlanLines(std::string_view what, std::string_view text);

// Renders one line per endpoint: what it opens, and for which programs.
std::string RenderEndpoints(const policy::Policy& policy);

// Renders what the agent will find: each path of the host once, with what becomes of it; limits,
// command and the names of its variables. The sandbox's own parts (/proc, /dev, links) are left
// out.
std::string RenderSandbox(const sandbox::SandboxPlan& plan);

}  // namespace run
