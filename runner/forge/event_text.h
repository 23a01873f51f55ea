// SPDX-License-Identifier: Apache-2.0
// The texts that people wrote in the event that started a run. All of them may be a stranger's, and
// nothing of them decides whom a run believes: that is forge/event.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forge {

// The bounds on an event's file and on the labels that are read, each GitHub's own: of a webhook's
// payload, and of one issue.
inline constexpr size_t kEventBytesMax = 25 * 1024 * 1024;
inline constexpr size_t kLabelsMax = 100;

// The texts of an event, each empty if the event does not have it. They are bytes as they came, of
// any length that an event may have.
struct EventText {
  // The activity by GitHub's name, of Gitea's and Forgejo's events too: "opened", "labeled".
  std::string action;
  int64_t number = 0;  // The number of the pull request or the issue; 0 if neither.
  std::string title;   // The title of the pull request or the issue.
  std::string body;    // Its body.
  std::string author;  // Its author, a login.
  // Likewise; where the event names the ones that were added or removed, those alone. An older
  // Gitea's does not: after a change they are all that are there, after all were removed none.
  std::vector<std::string> labels;
  std::string comment;  // The text of a comment or a review.
  std::string comment_author;
  // All further texts of GitHub's and Gitea's events, by the paths of their members
  // ("discussion.body"): also for events that have no member above.
  std::vector<std::pair<std::string, std::string>> others;
};

}  // namespace forge
