// SPDX-License-Identifier: Apache-2.0
#include "post/review_plan.h"

#include <map>
#include <set>
#include <string_view>

#include "forge/comment.h"

namespace post {
namespace {

using forge::ReviewThread;

// Every marker of this key begins so.
std::string MarkerStem(const std::string& marker_key) {
  std::string marker = forge::RenderMarker(marker_key + ":");
  return marker.substr(0, marker.size() - std::string_view(" -->").size());
}

bool Answered(const ReviewThread& thread) { return thread.comments > 1; }

bool Open(const ReviewThread& thread) { return !thread.resolved && !thread.hidden; }

// What is there of one remark.
struct Presence {
  const ReviewThread* standing = nullptr;  // Open where it is now, or in people's hands.
  const ReviewThread* resolved_by_us = nullptr;
  bool settled = false;

  void Add(const ReviewThread& thread) {
    if (Open(thread) && (!thread.outdated || Answered(thread))) {
      bool older = standing == nullptr || thread.first_id < standing->first_id;
      if (older) standing = &thread;
    } else if (thread.resolved && !thread.resolved_by_us) {
      settled = true;
    } else if (thread.resolved && !thread.outdated && !thread.hidden) {
      resolved_by_us = &thread;
    }
  }
};

}  // namespace

std::string MarkerOf(const std::string& marker_key, const Remark& remark) {
  return forge::RenderMarker(marker_key + ":" + remark.fingerprint);
}

ReviewPlan PlanReview(const std::vector<Placed>& placed, const std::vector<ReviewThread>& threads,
                      const ReviewFacts& facts) {
  const std::string stem = MarkerStem(facts.marker_key);
  std::map<std::string, Presence> there;  // By marker.
  std::vector<std::pair<std::string, const ReviewThread*>> ours;
  for (const ReviewThread& thread : threads) {
    if (!thread.ours || !thread.first_text.starts_with(stem)) continue;
    std::string marker = thread.first_text.substr(0, thread.first_text.find_first_of("\r\n"));
    there[marker].Add(thread);
    ours.emplace_back(std::move(marker), &thread);
  }
  ReviewPlan plan;
  std::set<std::string> wanted;
  std::set<std::string> reopened;
  for (const Placed& one : placed) {
    std::string marker = MarkerOf(facts.marker_key, one.remark);
    wanted.insert(marker);
    if (one.spot == Spot::kSummary) continue;
    const Presence& presence = there[marker];
    if (presence.standing != nullptr) continue;
    if (presence.settled) {
      ++plan.settled;
    } else if (presence.resolved_by_us != nullptr) {
      plan.reopen.push_back(presence.resolved_by_us);
    } else {
      plan.post.push_back(&one);
    }
  }
  for (const auto& [marker, thread] : ours) {
    if (!Open(*thread) || Answered(*thread)) continue;
    const bool moved = wanted.contains(marker) && thread->outdated;
    const bool gone = !wanted.contains(marker) && facts.judged;
    if (moved || gone) {
      plan.resolve.push_back(thread);
    } else if (wanted.contains(marker) && there[marker].standing->first_id != thread->first_id) {
      plan.remove.push_back(thread);
    }
  }
  return plan;
}

}  // namespace post
