// SPDX-License-Identifier: Apache-2.0
// A report on a pull request of GitHub, Gitea or Forgejo, or on a merge request of GitLab: one
// comment, one review with comments beside lines (or as many discussions), one check run or commit
// status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/forge.h"
#include "forge/sticky_comment.h"
#include "post/patch_delivery.h"
#include "post/remark.h"
#include "post/reviewer.h"
#include "report/read.h"

namespace post {

// The parts of a report to post.
struct Parts {
  bool comment = true;
  bool review = true;
  bool check = false;  // GitHub's alone.
  bool status = false;
  bool sarif = false;  // GitHub's alone.
  // GitHub's alone; without a bundle if the report has none.
  std::optional<forge::StatementUpload> statement = {};
  PatchRequest patch = {};
  std::vector<std::string> labels = {};  // forge::ValidLabel().
  bool budget = false;                   // What the run has spent: CountsCost().
};

// Returns whether the post has to count what the run has spent, since the run could not.
bool CountsCost(const report::BudgetRecord& budget);

// Returns the permissions of a GitHub application that the parts need, each to write.
std::vector<std::string> PermissionsOf(const Parts& parts);

struct Target {
  forge::Place place;
  // The event's commit, of a report that is about no pull request.
  std::string head_sha = {};
  std::string head_ref = {};  // Likewise, in full: "refs/heads/main".
  std::string marker_key;     // forge::StickyComment::marker_key.
  std::string full_text_at;   // Likewise.
  std::string run_url;        // For people; may be empty.
};

struct Outcome {
  forge::CommentOutcome comment;
  Delivered delivered;
  PatchOutcome patch;
  bool moved_on = false;  // The pull request has another head than the one that was reviewed.
  bool late = false;      // A newer report is there: nothing was posted.
  // The parts that are there by now, and those that are not: "comment", "review", "changes",
  // "check", "status", "sarif", "statement", "label", "budget". One with nothing to post is in
  // neither, or there.
  std::vector<std::string> made = {};
  std::vector<std::string> failed = {};
  // Parts that were not posted: "review: why (what to grant)".
  std::vector<std::string> refused;
  // The first failure that another attempt may mend, or that of the comment. The other parts were
  // tried all the same.
  Status ended = Ok();
  // The remarks of a refused review, or if there is no comment, those that it would have had.
  std::vector<Remark> undelivered;
};

// Posts `parts`, each for itself: what the forge does not permit is reported in Outcome::refused.
// Posting the same report again changes nothing; a later report moves what has moved, and resolves
// what is gone; after a failure it begins where this one stopped.
Outcome PostToPullRequest(forge::Forge& forge, const Target& target, const Parts& parts,
                          const report::PostedReport& report, Deadline deadline);

}  // namespace post
