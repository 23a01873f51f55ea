// SPDX-License-Identifier: Apache-2.0
// What a post does about the threads of a pull request, decided from values: the effects are
// elsewhere (pull_request.cc).
#pragma once

#include <string>
#include <vector>

#include "forge/reviews.h"
#include "post/remark.h"

namespace post {

struct ReviewFacts {
  std::string marker_key;  // Of our threads: "workflow/job".
  // The run came to an end of its own, and looked at what is the head now. Otherwise what it does
  // not say has no meaning, and nothing is resolved for it.
  bool judged = true;
};

// The pointers are into what was given to PlanReview().
struct ReviewPlan {
  std::vector<const Placed*> post;                 // Beside lines or on files, and not there.
  std::vector<const forge::ReviewThread*> reopen;  // What we resolved, and is found again.
  std::vector<const forge::ReviewThread*> resolve;
  std::vector<const forge::ReviewThread*> remove;  // Posted by another post at the same moment.
  int settled = 0;  // Remarks whose thread a person resolved: theirs, so not posted again.
};

// "<!-- agentic-ci:KEY:FINGERPRINT -->": what the thread of a remark begins with.
std::string MarkerOf(const std::string& marker_key, const Remark& remark);

// A remark is there when one of our threads has its marker and is open on lines that have not
// moved, or was answered, which makes it people's. A thread is resolved when its remark is gone, or
// stands elsewhere by now; never one that was answered. Of threads that say the same the oldest
// stays.
ReviewPlan PlanReview(const std::vector<Placed>& placed,
                      const std::vector<forge::ReviewThread>& threads, const ReviewFacts& facts);

}  // namespace post
