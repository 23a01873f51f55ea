// SPDX-License-Identifier: Apache-2.0
// The texts that people wrote in the event that started a run. All of them may be a stranger's, and
// nothing of them decides whom a run believes: that is forge/event.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "forge/event.h"

namespace forge {

// The texts of an event, each empty if the event does not have it. They are bytes as they came, of
// any length that an event may have.
struct EventText {
  // The activity by GitHub's name, of Gitea's and Forgejo's events too: "opened", "labeled".
  std::string action;
  int64_t number = 0;  // The number of the pull request or the issue; 0 if neither.
  std::string title;   // The title of the pull request or the issue.
  std::string body;    // Its body.
  std::string author;  // Its author, a login.
  // Likewise; where the event names the one that was added or removed, that one alone. Gitea's does
  // not: after an addition they are all that are there, after all were removed none.
  std::vector<std::string> labels;
  std::string comment;  // The text of a comment or a review.
  std::string comment_author;
};

// Reads CI_MERGE_REQUEST_* with GITLAB_CI=true, otherwise the file that GITHUB_EVENT_PATH names, as
// ReadEvent() did. Returns an empty text without a forge.
Result<EventText> ReadEventText(const EnvironmentReader& environment, const Event& event);

// Parses the event's file; pure. Fails with kInvalid if `payload` is not a JSON object.
Result<EventText> ParseEventText(std::string_view payload);

}  // namespace forge
