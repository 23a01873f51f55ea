// SPDX-License-Identifier: Apache-2.0
// One comment per pull request and marker, kept up to date.
#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/event.h"

namespace forge {

struct StickyComment {
  ForgeKind forge = ForgeKind::kGitHub;  // Whose API it is.
  std::string repository;                // "owner/name"; on GitLab "group/.../name".
  int64_t project_id = 0;                // GitLabProject::id.
  int64_t proposal_number = 0;
  // Tells the comments of several workflows on one pull request apart: "workflow/job". Any bytes.
  std::string marker_key;
  // Markdown, already made harmless by the report. HTML comments are taken out of it here, so that
  // it can not carry a marker; bytes that are not UTF-8 become U+FFFD.
  std::string body;
  // Where the whole text is, for the note under a body that had to be cut: "the artifact of
  // RUN_URL".
  std::string full_text_at;
};

struct CommentOutcome {
  std::string comment_url;  // For people.
  int64_t comment_id = 0;
  bool created = false;  // False: an earlier comment was updated.
  bool cut = false;      // The body was over the bound.
};

// Makes the one comment of `marker_key` say `body`: updates ours when there is one, creates it
// otherwise. A comment counts as ours by its author (GET /user, else GraphQL's viewer, else
// github-actions[bot]), never by its marker alone. When two posts race, both end on the older
// comment. Errors as of Client; kInvalid also for a malformed repository or number.
Result<CommentOutcome> KeepComment(Client& client, const StickyComment& comment, Deadline deadline);

// What every request to GitHub carries. The service's address, the token and where to reach it are
// left to the caller.
ClientOptions GitHubClient(const std::string& repository, int64_t proposal_number);

}  // namespace forge
