// SPDX-License-Identifier: Apache-2.0
#include "post/reviewer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "forge/comment.h"
#include "net/retry.h"
#include "report/verdict.h"

namespace post {
namespace {

constexpr int kRoundsMax = 4;

bool CanWait(const Error& error) { return error.code == Code::kTemporary; }

bool Speaks(const report::PostedReport& report, bool with_changes) {
  return (with_changes && !report.patch.empty()) ||
         std::any_of(report.record.findings.begin(), report.record.findings.end(),
                     [](const report::Finding& finding) {
                       return finding.source == report::FindingSource::kAgent;
                     });
}

// A forge may list a tree in so many requests that no time would be left for the review.
Deadline HalfOf(Deadline deadline) {
  if (deadline.never()) return deadline;
  return Deadline::After(std::chrono::milliseconds(deadline.poll_ms() / 2));
}

// Only an agent that came to its own end has looked at everything.
bool JudgedAll(const report::PostedReport& report) {
  report::OutcomeKind kind = report.record.outcome.kind;
  return report::Succeeded(kind) || kind == report::OutcomeKind::kRefused;
}

}  // namespace

Result<const std::vector<forge::DiffFile>*> Reviewer::ReadDiff() {
  if (!diff_) diff_ = TRY(reviews_.ReadFiles(deadline_));
  return &*diff_;
}

Status Reviewer::Plan(const report::PostedReport& report, const ReviewBasis& basis) {
  if (planned_ || !Speaks(report, basis.with_changes)) return Ok();
  const std::vector<forge::DiffFile>& diff = *TRY(ReadDiff());
  PlacementLimits limits;
  if (!forge_.capabilities().comments_on_files) limits.files_max = 0;
  placed_ = Place(RemarksOf(report, diff, basis.with_changes), diff, !basis.trusts_lines, limits);
  planned_ = true;
  return Ok();
}

Status Reviewer::Run(const report::PostedReport& report, const ReviewBasis& basis,
                     Delivered* delivered, std::vector<std::string>* refused) {
  const ReviewFacts facts{marker_key_, JudgedAll(report) && !basis.moved_on};
  head_sha_ = basis.head_sha;
  TRY(Plan(report, basis));
  TRY(JudgeSuggestions(basis));
  Status done = PostAll(facts, delivered);
  if (done.ok()) done = Tidy(facts, delivered, refused);
  Count(delivered);
  return done;
}

// Only what a click would apply: elsewhere a suggestion is text.
Status Reviewer::JudgeSuggestions(const ReviewBasis& basis) {
  if (!forge_.capabilities().suggestions) return Ok();
  SuggestionGate gate(forge_.branches(), head_sha_, basis.read_gates, HalfOf(deadline_));
  for (Placed& placed : placed_) {
    Remark& remark = placed.remark;
    if (placed.spot != Spot::kLines || !remark.suggestion) continue;
    std::string why = TRY(gate.WhyNot(remark.path, *remark.suggestion));
    if (!why.empty()) Withhold(why, &remark);
  }
  return Ok();
}

std::vector<Remark> Reviewer::ForSummary() const {
  std::vector<Remark> remarks;
  for (const Placed& placed : placed_) {
    if (placed.spot == Spot::kSummary) remarks.push_back(placed.remark);
  }
  return remarks;
}

// Each round starts from what is there, so that it does not matter where an earlier one stopped.
Status Reviewer::PostAll(const ReviewFacts& facts, Delivered* delivered) {
  for (int round = 1;; ++round) {
    threads_ = TRY(reviews_.ReadThreads(deadline_));
    ReviewPlan plan = PlanReview(placed_, threads_, facts);
    delivered->settled = plan.settled;
    delivered->others = plan.others;
    if (plan.post.empty()) return Ok();
    std::vector<Placed*> missing;
    for (Placed& placed : placed_) {
      bool wanted = std::find(plan.post.begin(), plan.post.end(), &placed) != plan.post.end();
      if (wanted) missing.push_back(&placed);
    }
    posted_any_ = true;
    Status posted = PostOnce(missing);
    if (posted.ok()) return Ok();
    bool again = CanWait(posted.error()) && forge_.may_have_arrived();
    // A forge that restarts takes seconds.
    if (!again || round == kRoundsMax || !net::PauseBefore(round + 1, deadline_)) return posted;
  }
}

Status Reviewer::PostOnce(const std::vector<Placed*>& missing) {
  std::vector<Placed*> on_lines;
  for (Placed* placed : missing) {
    if (placed->spot == Spot::kLines) on_lines.push_back(placed);
  }
  const size_t batch_max = reviews_.comments_max();
  for (size_t from = 0; from < on_lines.size(); from += std::min(batch_max, on_lines.size())) {
    size_t count = std::min(batch_max, on_lines.size() - from);
    TRY(PostOnLines({on_lines.begin() + static_cast<ptrdiff_t>(from),
                     on_lines.begin() + static_cast<ptrdiff_t>(from + count)}));
  }
  size_t on_files = 0;
  for (Placed* placed : missing) {
    if (placed->spot != Spot::kFile) continue;
    const bool takes_it = forge_.capabilities().comments_on_files;
    if (!takes_it || on_files++ >= PlacementLimits().files_max) {
      placed->spot = Spot::kSummary;
      continue;
    }
    Status posted =
        reviews_.PostOnFile(head_sha_, placed->remark.path, TextOf(*placed).markdown, deadline_);
    if (posted.ok()) continue;
    if (posted.error().code != Code::kInvalid) return posted;
    placed->spot = Spot::kSummary;
  }
  return Ok();
}

Status Reviewer::PostOnLines(const std::vector<Placed*>& batch) {
  std::vector<forge::ReviewComment> comments;
  size_t suggestions = 0;
  for (const Placed* placed : batch) {
    const Remark& remark = placed->remark;
    RemarkText rendered = TextOf(*placed);
    suggestions += rendered.suggests ? 1 : 0;
    comments.push_back({remark.path, remark.line, remark.end_line, std::move(rendered.markdown)});
  }
  std::string text = forge::RenderMarker(marker_key_) + "\n" + std::to_string(comments.size()) +
                     (comments.size() == 1 ? " comment" : " comments");
  if (suggestions > 0) {
    text += ", " + std::to_string(suggestions) + " with a change that you can apply";
  }
  Status posted = reviews_.Post(head_sha_, text + ".\n", comments, deadline_);
  if (posted.ok() || posted.error().code != Code::kInvalid) return posted;
  // A line is not where the forge's own list of files said, and none of them arrived: only that
  // one is to lose its line.
  if (batch.size() == 1 || splits_left_ == 0) {
    for (Placed* placed : batch) placed->spot = Spot::kFile;
    return Ok();
  }
  --splits_left_;
  const auto middle = batch.begin() + static_cast<ptrdiff_t>(batch.size() / 2);
  TRY(PostOnLines({batch.begin(), middle}));
  return PostOnLines({middle, batch.end()});
}

RemarkText Reviewer::TextOf(const Placed& placed) const {
  const Remark& remark = placed.remark;
  const forge::Capabilities& can = forge_.capabilities();
  const bool on_lines = placed.spot == Spot::kLines;
  const bool one_line = remark.end_line <= remark.line;
  std::string fence;
  if (on_lines && can.suggestions) {
    fence = reviews_.SuggestionFence(remark.end_line - remark.line + 1);
  }
  RemarkText rendered = RenderRemark(remark, fence, !on_lines || !(one_line || can.line_ranges));
  rendered.markdown = MarkerOf(marker_key_, remark) + "\n" + rendered.markdown;
  return rendered;
}

void Reviewer::Count(Delivered* delivered) const {
  for (const Placed& placed : placed_) {
    int& count = placed.spot == Spot::kLines  ? delivered->on_lines
                 : placed.spot == Spot::kFile ? delivered->on_files
                                              : delivered->in_summary;
    ++count;
  }
}

// A thread that stays open keeps nothing back: everything that was found is said all the same.
Status Reviewer::ResolveGone(const ReviewPlan& plan, Delivered* delivered,
                             std::vector<std::string>* refused) {
  std::string stays;
  for (const forge::ReviewThread* thread : plan.resolve) {
    Status done = reviews_.Resolve(thread->id, deadline_);
    if (!done.ok() && CanWait(done.error())) return done;
    // GITHUB_TOKEN may resolve threads only with `contents: write`, and hide comments without.
    if (done.ok() || reviews_.Hide(*thread, deadline_).ok()) {
      ++delivered->resolved;
      continue;
    }
    const bool missing = done.error().code == Code::kNotFound;
    stays = missing ? "this forge cannot resolve threads, or it is gone" : done.error().what;
  }
  if (!stays.empty()) refused->push_back("review: a thread stays open: " + stays);
  return Ok();
}

// Does what the plan has besides posting, as things are now.
Status Reviewer::Tidy(const ReviewFacts& facts, Delivered* delivered,
                      std::vector<std::string>* refused) {
  if (posted_any_ && !forge_.dry_run()) threads_ = TRY(reviews_.ReadThreads(deadline_));
  ReviewPlan plan = PlanReview(placed_, threads_, facts);
  for (const ReturnedRemark& returned : plan.reopen) {
    Status reopened = reviews_.Reopen(returned.thread->id, deadline_);
    if (reopened.ok()) continue;
    if (CanWait(reopened.error())) return reopened;
    refused->push_back("review: a thread stays resolved: " + reopened.error().what);
    placed_[static_cast<size_t>(returned.remark - placed_.data())].spot = Spot::kSummary;
  }
  TRY(ResolveGone(plan, delivered, refused));
  for (const forge::ReviewThread* thread : plan.remove) {
    Status removed = reviews_.DeleteComment(thread->first_id, deadline_);
    if (removed.ok()) continue;
    if (CanWait(removed.error())) return removed;
    refused->push_back("review: a comment stays doubled: " + removed.error().what);
  }
  if (!plan.remove.empty()) threads_ = TRY(reviews_.ReadThreads(deadline_));
  const std::string marker = forge::RenderMarker(marker_key_);
  for (const forge::EmptyReview& review : reviews_.empty_reviews()) {
    if (!review.text.starts_with(marker)) continue;
    Status retired = reviews_.Retire(review.id, deadline_);
    if (retired.ok()) continue;
    if (CanWait(retired.error())) return retired;
    refused->push_back("review: an empty one stays: " + retired.error().what);
  }
  return Ok();
}

}  // namespace post
