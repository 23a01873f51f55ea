// SPDX-License-Identifier: Apache-2.0
// The agent's patch as commits: on the pull request's own branch, or on a branch of agentic-ci's
// with a pull request. Everything a report says is judged anew, and nothing is ever forced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "change/gate.h"
#include "change/tree_edit.h"
#include "forge/forge.h"
#include "post/patch_files.h"
#include "report/read.h"

namespace post {

enum class PatchWay { kNone, kCommits, kBranch, kPullRequest };

struct PatchRequest {
  PatchWay way = PatchWay::kNone;
  int64_t number = 0;  // The pull request that the report is about; 0 if none.
  std::string base;    // Without a pull request, the branch that the run was started for.
  std::string marker_key;
  std::string branch;   // If empty, BranchName().
  std::string title;    // The title of commit and pull request; if empty, a plain one.
  std::string run_url;  // May be empty.
  // The head that the job's own event names, of this repository's; may be empty. A report's word
  // for the commit that it saw counts only where the forge or the event has it.
  std::string event_head;
  // Returns the limits and the rules of the configuration at a commit. Must be set. PatchDelivery
  // gives it a branch: PostToPullRequest() finds that one's commit.
  std::function<Result<change::GateLimits>(const std::string& commit)> read_gates;
};

struct PatchOutcome {
  // Why the patch is not delivered, or not in all ways: with a `commit`, no pull request carries
  // that, or its text stays. Empty if it is delivered, or there is none.
  std::string refused;
  // True if a refusal is a matter of course, such as for a fork, and not a failure.
  bool told = false;
  std::string commit;  // The commit that holds the patch.
  std::string branch;
  int64_t number = 0;   // The number of the pull request that carries it.
  bool closed = false;  // True if a person has closed that pull request.
  std::string url;
  bool fresh = false;             // True if this post made the commit.
  bool incomplete = false;        // The run's budget was used up before the agent had finished.
  std::string verification = {};  // forge::Branches::verification() of that commit.
  // How the changes were fitted to a branch that has moved on since the run; empty if it has not.
  // Paths in it are not neutral.
  std::string how;
};

// Returns the branch of agentic-ci's for one pull request or base branch and marker.
std::string BranchName(const PatchRequest& request);

// One delivery. Prepare() only reads; what is posted in between knows what is about to happen.
class PatchDelivery {
 public:
  // Borrows all of it.
  PatchDelivery(forge::Forge& forge, const PatchRequest& request,
                const report::PostedReport& report);

  // Prepares the delivery. `proposal` is the pull request `number` as it is now, or null.
  Status Prepare(const forge::Proposal* proposal, Deadline deadline);
  // True if the patch is about to be on the pull request's own branch, or already is: its changes
  // need no suggestions.
  bool on_proposal() const;
  // True if the pull request's head is elsewhere only since an earlier post put the patch there.
  bool moved_by_us() const { return moved_by_us_; }

  // Makes what is missing. A refusal is in the outcome and no error.
  Status Deliver(const std::string& summary, Deadline deadline);
  const PatchOutcome& outcome() const { return outcome_; }

 private:
  enum class State { kSettled, kReady, kDelivered };
  Status Refuse(std::string reason, bool told = false);
  Status JudgePatch();
  Status Look(Deadline deadline);
  Status LookAtProposal(Deadline deadline);
  Status LookAtBranch(Deadline deadline);
  Status FindSeen(const std::vector<forge::CommitRecord>& history, Deadline deadline);
  Status PlanOrDivert(Deadline deadline);
  Status Plan(Deadline deadline);
  Status FindMerged(Deadline deadline);
  Result<bool> KeepsTheBase(const CommitTree& head, Deadline deadline);
  Status JudgeFiles(change::GateLimits limits, const CommitTree& tree);
  Result<std::string> FitToHead(const CommitTree& seen, const CommitTree& head);
  Status CommitOnce(Deadline deadline);
  Status KeepPullRequest(const std::string& summary, Deadline deadline);
  std::string Trailer() const;
  std::string Message() const;
  std::string Title() const;

  forge::Forge& forge_;
  const PatchRequest& request_;
  const report::PostedReport& report_;
  forge::Branches& branches_;
  std::optional<forge::Proposal> proposal_;
  State state_ = State::kSettled;
  bool moved_by_us_ = false;
  std::string base_;  // The branch that the commit is for.
  std::string base_tip_;
  PatchWay way_;                   // The request's, or kPullRequest where that cannot be.
  forge::CommitRecord seen_;       // The commit that the run saw.
  std::set<std::string> history_;  // Of the pull request's branch.
  std::optional<forge::CommitRecord> merged_;  // The base branch's commit that the agent merged,
  forge::CommitRecord parted_;                 // and the one that both branches had before.
  std::string planned_on_;                     // The commit that `commit_.files` are for.
  forge::CommitRequest commit_;
  PatchOutcome outcome_;
};

}  // namespace post
