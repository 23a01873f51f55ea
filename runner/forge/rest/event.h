// SPDX-License-Identifier: Apache-2.0
// The events of GitHub Actions, which Gitea and Forgejo have too: GITHUB_*, and a file of JSON.
#pragma once

#include <string_view>

#include "base/result.h"
#include "forge/event.h"
#include "forge/event_text.h"

namespace forge {

inline constexpr const char* kActionsVariables[] = {"GITHUB_ACTIONS", "GITEA_ACTIONS",
                                                    "FORGEJO_ACTIONS", "GITHUB_RUN_ID"};
inline constexpr std::string_view kActionsPrefixes[] = {"GITHUB_"};

// https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
inline constexpr std::string_view kActionsEvents[] = {
    "branch_protection_rule",
    "check_run",
    "check_suite",
    "create",
    "delete",
    "deployment",
    "deployment_status",
    "discussion",
    "discussion_comment",
    "fork",
    "gollum",
    "issue_comment",
    "issues",
    "label",
    "merge_group",
    "milestone",
    "page_build",
    "public",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_target",
    "push",
    "registry_package",
    "release",
    "repository_dispatch",
    "schedule",
    "status",
    "watch",
    "workflow_call",
    "workflow_dispatch",
    "workflow_run",
};

// Reads the event that GITHUB_* and `payload`, the text of the event's file, describe. `forge` is
// kGitHub or kGitea. Fails with kInvalid and kRefused as ParseEvent() does.
Result<Event> ParseActionsEvent(const EnvironmentReader& environment, ForgeKind forge,
                                std::string_view payload);

// Parses the texts of the event's file; pure. Fails with kInvalid if `payload` is not a JSON
// object.
Result<EventText> ParseActionsText(std::string_view payload);

}  // namespace forge
