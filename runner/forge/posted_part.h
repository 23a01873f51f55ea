// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace forge {

// The parts of a report that can be posted: the words of `post --what`, and of a task's `post`.
inline constexpr auto kPostedParts =
    std::to_array<std::string_view>({"comment", "review", "check", "status", "sarif", "statement",
                                     "commits", "branch", "pull-request", "merge-request"});

// Those that deliver the agent's changes, of which there can be one. "merge-request" is the same
// as "pull-request".
constexpr bool DeliversChanges(std::string_view part) {
  return part == "commits" || part == "branch" || part == "pull-request" || part == "merge-request";
}

}  // namespace forge
