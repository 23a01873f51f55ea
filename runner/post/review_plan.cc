// SPDX-License-Identifier: Apache-2.0
#include "post/review_plan.h"

#include <map>
#include <set>
#include <string_view>
#include <tuple>

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

// Returns whether the thread is in people's hands: they answered, or resolved it.
bool Theirs(const ReviewThread& thread) {
  return thread.resolved ? !thread.resolved_by_us : Open(thread) && Answered(thread);
}

// Returns whether people read the thread where its remark is: not one that is outdated or folded
// away, unless it is theirs.
bool Readable(const ReviewThread& thread) {
  return Theirs(thread) || (!thread.outdated && !thread.hidden);
}

// Returns whether the thread may be at the remark's line: some threads, such as those on files,
// have no known line.
bool At(const ReviewThread& thread, const Placed& placed) {
  return placed.spot != Spot::kLines || thread.line == 0 || thread.line == placed.remark.end_line;
}

struct OurThread {
  const ReviewThread* thread = nullptr;
  Fingerprint said;
  const Placed* match = nullptr;
};

// The fit of a thread to a remark; the lower, the better.
enum class Fit { kSame, kReworded, kElsewhere, kNone };

Fit FitOf(const OurThread& ours, const Placed& placed) {
  const ReviewThread& thread = *ours.thread;
  const Fingerprint& wanted = placed.remark.fingerprint;
  if (!Readable(thread)) return Fit::kNone;
  const bool same_words = ours.said.message == wanted.message;
  const bool same_change = ours.said.suggestion == wanted.suggestion;
  const bool here = At(thread, placed);
  if (here && same_words && same_change) return Fit::kSame;
  // A thread that was resolved as gone is another finding's. A click must apply what is meant now,
  // unless the thread is people's by now.
  const bool at_its_line = here && placed.spot == Spot::kLines && thread.line != 0 && !thread.stale;
  if (at_its_line && (Theirs(thread) || (same_change && !thread.resolved))) return Fit::kReworded;
  return same_words && Theirs(thread) ? Fit::kElsewhere : Fit::kNone;
}

// An open thread before one that a person resolved, and that before one that we did; the oldest of
// equals.
bool Before(const ReviewThread& one, const ReviewThread& other) {
  auto rank = [](const ReviewThread& thread) {
    return std::tuple(thread.resolved, thread.resolved_by_us, thread.first_id);
  };
  return rank(one) < rank(other);
}

// Matches the threads and the remarks of one rule on one file.
class Group {
 public:
  void Add(const ReviewThread& thread, const Fingerprint& said) {
    threads_.push_back({&thread, said});
  }
  void Add(const Placed& placed) { remarks_.push_back(&placed); }

  // Gives each remark at most one thread, and each thread at most one remark.
  void Match() {
    std::set<const Placed*> matched;
    for (Fit fit : {Fit::kSame, Fit::kReworded, Fit::kElsewhere}) {
      for (const Placed* placed : remarks_) {
        if (matched.contains(placed)) continue;
        OurThread* best = nullptr;
        for (OurThread& ours : threads_) {
          if (ours.match != nullptr || FitOf(ours, *placed) != fit) continue;
          if (best == nullptr || Before(*ours.thread, *best->thread)) best = &ours;
        }
        if (best == nullptr) continue;
        best->match = placed;
        matched.insert(placed);
      }
    }
  }

  void PlanRemarks(ReviewPlan& plan) const {
    for (const Placed* placed : remarks_) {
      if (placed->spot == Spot::kSummary) continue;
      const ReviewThread* thread = ThreadOf(*placed);
      if (thread == nullptr) {
        plan.post.push_back(placed);
      } else if (thread->resolved && !thread->resolved_by_us) {
        ++plan.settled;
      } else if (thread->resolved) {
        plan.reopen.push_back({placed, thread});
      }
    }
  }

  // Plans for the rest, which says what is gone, what stands elsewhere by now, or what another says
  // too.
  void PlanRest(bool judged, ReviewPlan& plan) const {
    for (const OurThread& ours : threads_) {
      const ReviewThread& thread = *ours.thread;
      if (ours.match != nullptr || !Open(thread) || Answered(thread)) continue;
      bool twin = false;
      bool replaced = false;
      for (const Placed* placed : remarks_) {
        const Fingerprint& said = placed->remark.fingerprint;
        if (said.message != ours.said.message) continue;
        const ReviewThread* other = ThreadOf(*placed);
        const bool beside = other != nullptr && Open(*other) && other->line == thread.line;
        twin |= beside && !thread.outdated && said == ours.said;
        replaced |= beside || thread.outdated;
      }
      if (twin) {
        plan.remove.push_back(&thread);
      } else if (judged || replaced) {
        plan.resolve.push_back(&thread);
      }
    }
  }

 private:
  const ReviewThread* ThreadOf(const Placed& placed) const {
    for (const OurThread& ours : threads_) {
      if (ours.match == &placed) return ours.thread;
    }
    return nullptr;
  }

  std::vector<OurThread> threads_;
  std::vector<const Placed*> remarks_;
};

}  // namespace

std::string MarkerOf(const std::string& marker_key, const Remark& remark) {
  return forge::RenderMarker(marker_key + ":" + remark.fingerprint.Text());
}

ReviewPlan PlanReview(const std::vector<Placed>& placed, const std::vector<ReviewThread>& threads,
                      const ReviewFacts& facts) {
  const std::string stem = MarkerStem(facts.marker_key);
  ReviewPlan plan;
  std::map<std::string, Group> groups;  // The groups by rule and file.
  for (const ReviewThread& thread : threads) {
    if (!thread.first_text.starts_with(stem)) continue;
    const std::string_view rest = std::string_view(thread.first_text).substr(stem.size());
    const std::string_view fingerprint = rest.substr(0, rest.find(' '));
    // Another key that goes on behind the colon: a task's.
    if (fingerprint.find(':') != std::string_view::npos) continue;
    if (!thread.ours) {
      plan.others += Open(thread) ? 1 : 0;
      continue;
    }
    const Fingerprint said = Fingerprint::Read(rest);
    groups[said.place].Add(thread, said);
  }
  for (const Placed& one : placed) groups[one.remark.fingerprint.place].Add(one);
  for (auto& [place, group] : groups) {
    group.Match();
    group.PlanRemarks(plan);
    group.PlanRest(facts.judged, plan);
  }
  return plan;
}

}  // namespace post
