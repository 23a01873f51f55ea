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

// Empty where the event does not say. Bytes as they came, of any length that an event may have.
struct EventText {
  std::string action;               // The event's activity: "opened", "labeled", "created".
  int64_t number = 0;               // Of the pull request or the issue; 0: neither.
  std::string title;                // Of the pull request or the issue.
  std::string body;                 // Likewise.
  std::string author;               // Likewise: a login.
  std::vector<std::string> labels;  // Likewise; where one was added or removed, that one alone.
  std::string comment;              // Of a comment's or a review's event.
  std::string comment_author;
};

// With GITLAB_CI=true reads CI_MERGE_REQUEST_*, otherwise the file that GITHUB_EVENT_PATH names, as
// ReadEvent() did; without a forge, an empty text.
Result<EventText> ReadEventText(const EnvironmentReader& environment, const Event& event);

// The part that is pure. kInvalid: not a JSON object.
Result<EventText> ParseEventText(std::string_view payload);

}  // namespace forge
