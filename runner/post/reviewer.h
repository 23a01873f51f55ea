// SPDX-License-Identifier: Apache-2.0
// The review of one post: what has its place beside lines and on files, and what becomes of the
// threads of earlier ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/forge.h"
#include "post/remark.h"
#include "post/review_plan.h"
#include "post/suggestion_gate.h"
#include "report/read.h"

namespace post {

// The number of a report's remarks in each place where they are now.
struct Delivered {
  int on_lines = 0;
  int on_files = 0;
  int in_summary = 0;  // Only in the comment.
  int nowhere = 0;     // Outcome::undelivered.
  int resolved = 0;    // Threads of earlier posts whose remark is gone.
  int others = 0;      // ReviewPlan::others
  int settled = 0;     // Remarks whose thread a person resolved: not posted again.
};

// The facts that a review is made from, besides the report.
struct ReviewBasis {
  std::string head_sha;      // The head of the pull request, as it is now.
  bool moved_on = false;     // True if that is another than the one that was reviewed.
  bool trusts_lines = true;  // True if the difference shows the lines that were reviewed.
  bool with_changes = true;  // The agent's changes are suggested; otherwise delivered elsewhere.
  ReadGates read_gates;      // For what a click would apply. Must be set.
};

class Reviewer {
 public:
  // Borrows the forge. `marker_key` tells the threads of several jobs apart.
  Reviewer(forge::Forge& forge, std::string marker_key, Deadline deadline)
      : forge_(forge),
        marker_key_(std::move(marker_key)),
        deadline_(deadline),
        reviews_(forge.reviews()) {}

  // Reads the difference of the pull request, once.
  Result<const std::vector<forge::DiffFile>*> ReadDiff();

  // Decides where each remark goes, for ForSummary() before Run(), which decides it otherwise.
  Status Plan(const report::PostedReport& report, const ReviewBasis& basis);

  // Posts what is not there, reopens what is back, and resolves what is gone. On a failure,
  // `delivered` has what was done before it; parts that the forge does not permit are added to
  // `refused`.
  Status Run(const report::PostedReport& report, const ReviewBasis& basis, Delivered* delivered,
             std::vector<std::string>* refused);

  // Returns what has its place in the comment alone, as far as that is known by now.
  std::vector<Remark> ForSummary() const;

 private:
  Status JudgeSuggestions(const ReviewBasis& basis);
  Status PostAll(const ReviewFacts& facts, Delivered* delivered);
  Status PostOnce(const std::vector<Placed*>& missing);
  Status PostOnLines(const std::vector<Placed*>& batch);
  RemarkText TextOf(const Placed& placed) const;
  void Count(Delivered* delivered) const;
  Status ResolveGone(const ReviewPlan& plan, Delivered* delivered,
                     std::vector<std::string>* refused);
  Status Tidy(const ReviewFacts& facts, Delivered* delivered, std::vector<std::string>* refused);

  forge::Forge& forge_;
  std::string marker_key_;
  Deadline deadline_;
  forge::Reviews& reviews_;
  std::string head_sha_;
  std::optional<std::vector<forge::DiffFile>> diff_;
  std::vector<Placed> placed_;
  bool planned_ = false;
  std::vector<forge::ReviewThread> threads_;
  bool posted_any_ = false;
  int splits_left_ = kSplitsMax;

  // The bound on splits of reviews with a line that the forge refuses.
  static constexpr int kSplitsMax = 12;
};

}  // namespace post
