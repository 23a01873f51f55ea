// SPDX-License-Identifier: Apache-2.0
// Plans what a post does about the threads of a pull request, from values alone: the effects are
// elsewhere (reviewer.cc).
#pragma once

#include <string>
#include <vector>

#include "forge/reviews.h"
#include "post/remark.h"

namespace post {

struct ReviewFacts {
  std::string marker_key;  // The key of this tool's threads: "workflow/job".
  // True if the run came to an end of its own, and looked at what is the head now. Otherwise its
  // silence has no meaning, and nothing is resolved for it.
  bool judged = true;
};

// The pointers are into what was given to PlanReview().
struct ReturnedRemark {
  const Placed* remark = nullptr;
  const forge::ReviewThread* thread = nullptr;
};

struct ReviewPlan {
  std::vector<const Placed*> post;     // Beside lines or on files, and not there.
  std::vector<ReturnedRemark> reopen;  // Threads that we resolved, of remarks that are back.
  std::vector<const forge::ReviewThread*> resolve;
  std::vector<const forge::ReviewThread*> remove;  // Posted by another post at the same moment.
  int others = 0;   // Open threads with our marker that another identity wrote.
  int settled = 0;  // Remarks whose thread a person resolved: theirs, so not posted again.
};

// Returns "<!-- agentic-ci:KEY:FINGERPRINT -->": what the thread of a remark begins with.
std::string MarkerOf(const std::string& marker_key, const Remark& remark);

// Plans a review. Each remark has at most one thread, and each thread at most one remark. A remark
// is there when one of our threads of its rule and file says the same at its line, or was worded
// otherwise at that line and suggests the same. A thread that a person answered or resolved is
// theirs: it is the remark's wherever it stands, and stays as it is. The other threads are resolved
// when the remark is gone, or stands elsewhere by now. Of threads that say the same at one line the
// oldest stays.
ReviewPlan PlanReview(const std::vector<Placed>& placed,
                      const std::vector<forge::ReviewThread>& threads, const ReviewFacts& facts);

}  // namespace post
