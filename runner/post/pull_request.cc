// SPDX-License-Identifier: Apache-2.0
#include "post/pull_request.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "forge/comment.h"
#include "post/policy_change.h"
#include "post/review_plan.h"
#include "report/findings.h"

namespace post {
namespace {

constexpr int kRoundsMax = 3;
constexpr int kSplitsMax = 12;  // Of reviews with a line that the forge refuses.
constexpr char kCommentPart[] = "comment";
constexpr char kPatchPart[] = "changes";
constexpr char kRulesNote[] = "rules";
constexpr int64_t kClockSkewMs = 600'000;  // A stamp beyond it says nothing.

bool CanWait(const Error& error) { return error.code == Code::kTemporary; }

// The review, until each remark has its place.
class Reviewer {
 public:
  Reviewer(forge::Forge& forge, const Target& target, const PatchDelivery& patch, Deadline deadline)
      : forge_(forge),
        target_(target),
        patch_(patch),
        deadline_(deadline),
        reviews_(forge.reviews()) {}

  // Of the pull request, read once.
  Result<const std::vector<forge::DiffFile>*> ReadDiff() {
    if (!diff_) diff_ = TRY(reviews_.ReadFiles(deadline_));
    return &*diff_;
  }

  // `proposal`: as it is now.
  Status Run(const report::PostedReport& report, const forge::Proposal& proposal, bool moved_on,
             Outcome& outcome) {
    const bool with_changes = !patch_.on_proposal();
    ReviewFacts facts{target_.marker_key, JudgedAll(report) && !moved_on};
    head_sha_ = proposal.head_sha;
    if (Speaks(report, with_changes)) {
      const std::vector<forge::DiffFile>& diff = *TRY(ReadDiff());
      const bool moved = moved_on || patch_.moved_by_us();
      placed_ = Place(RemarksOf(report, diff, with_changes), diff, moved);
    }
    Status posted = PostAll(facts, outcome);
    Count(outcome);
    if (!posted.ok()) return posted;
    return Tidy(facts, outcome);
  }

 private:
  static bool Speaks(const report::PostedReport& report, bool with_changes) {
    return (with_changes && !report.patch.empty()) ||
           std::any_of(report.record.findings.begin(), report.record.findings.end(),
                       [](const report::Finding& finding) {
                         return finding.source == report::FindingSource::kAgent;
                       });
  }

  // Only an agent that came to its own end has looked at everything.
  static bool JudgedAll(const report::PostedReport& report) {
    report::OutcomeKind kind = report.record.outcome.kind;
    return kind == report::OutcomeKind::kSuccess || kind == report::OutcomeKind::kRefused;
  }

  // Each round starts from what is there, so that it does not matter where an earlier one stopped.
  Status PostAll(const ReviewFacts& facts, Outcome& outcome) {
    for (int round = 1;; ++round) {
      threads_ = TRY(reviews_.ReadThreads(deadline_));
      ReviewPlan plan = PlanReview(placed_, threads_, facts);
      outcome.delivered.settled = plan.settled;
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
      if (!again || round == kRoundsMax) return posted;
    }
  }

  Status PostOnce(const std::vector<Placed*>& missing) {
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

  Status PostOnLines(const std::vector<Placed*>& batch) {
    std::vector<forge::ReviewComment> comments;
    size_t suggestions = 0;
    for (const Placed* placed : batch) {
      const Remark& remark = placed->remark;
      RemarkText rendered = TextOf(*placed);
      suggestions += rendered.suggests ? 1 : 0;
      comments.push_back({remark.path, remark.line, remark.end_line, std::move(rendered.markdown)});
    }
    std::string text = forge::RenderMarker(target_.marker_key) + "\n" +
                       std::to_string(comments.size()) +
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

  RemarkText TextOf(const Placed& placed) const {
    const Remark& remark = placed.remark;
    const forge::Capabilities& can = forge_.capabilities();
    const bool on_lines = placed.spot == Spot::kLines;
    const bool one_line = remark.end_line <= remark.line;
    std::string fence;
    if (on_lines && can.suggestions) {
      fence = reviews_.SuggestionFence(remark.end_line - remark.line + 1);
    }
    RemarkText rendered = RenderRemark(remark, fence, !on_lines || !(one_line || can.line_ranges));
    rendered.markdown = MarkerOf(target_.marker_key, remark) + "\n" + rendered.markdown;
    return rendered;
  }

  void Count(Outcome& outcome) const {
    for (const Placed& placed : placed_) {
      int& count = placed.spot == Spot::kLines  ? outcome.delivered.on_lines
                   : placed.spot == Spot::kFile ? outcome.delivered.on_files
                                                : outcome.delivered.in_summary;
      ++count;
    }
  }

  // What the plan has besides posting, as things are now.
  Status Tidy(const ReviewFacts& facts, Outcome& outcome) {
    if (posted_any_ && !forge_.dry_run()) threads_ = TRY(reviews_.ReadThreads(deadline_));
    ReviewPlan plan = PlanReview(placed_, threads_, facts);
    for (const forge::ReviewThread* thread : plan.reopen) {
      TRY(reviews_.Reopen(thread->id, deadline_));
    }
    std::optional<Error> refused;
    for (const forge::ReviewThread* thread : plan.resolve) {
      Status done = reviews_.Resolve(thread->id, deadline_);
      // GITHUB_TOKEN may resolve threads only with `contents: write`, and hide comments without.
      bool may_hide = !done.ok() && done.error().code == Code::kRefused;
      if (may_hide && reviews_.Hide(*thread, deadline_).ok()) done = Ok();
      if (may_hide && !done.ok()) {
        refused = done.error();
        continue;
      }
      TRY(std::move(done));
      ++outcome.delivered.resolved;
    }
    // Everything that was found is said all the same.
    if (refused) outcome.refused.push_back("review: a thread stays open: " + refused->what);
    for (const forge::ReviewThread* thread : plan.remove) {
      TRY(reviews_.DeleteComment(thread->first_id, deadline_));
    }
    return Ok();
  }

  forge::Forge& forge_;
  const Target& target_;
  const PatchDelivery& patch_;
  Deadline deadline_;
  forge::Reviews& reviews_;
  std::string head_sha_;
  std::optional<std::vector<forge::DiffFile>> diff_;
  std::vector<Placed> placed_;
  std::vector<forge::ReviewThread> threads_;
  bool posted_any_ = false;
  int splits_left_ = kSplitsMax;
};

forge::CheckRun CheckRunOf(const Target& target, const report::PostedReport& report) {
  forge::CheckRun run;
  run.name = "agentic-ci (" + target.marker_key + ")";
  run.details_url = target.run_url;
  run.summary = report.summary_markdown;
  run.title = report.verdict;
  bool success = report.record.outcome.kind == report::OutcomeKind::kSuccess;
  bool errors = false;
  for (const report::Finding& finding : report::ListFindings(report.record)) {
    errors |= finding.severity == report::Severity::kError;
    if (finding.path.empty()) continue;  // The summary has it.
    run.annotations.push_back({LevelOf(finding.severity), finding.rule, finding.message,
                               finding.path, finding.line, finding.end_line});
  }
  run.conclusion = !success ? "failure" : errors ? "neutral" : "success";
  run.external_id = codec::Sha256Hex(run.summary + report.record.event.head_sha +
                                     std::to_string(report.record.started_at_ms))
                        .substr(0, 32);
  return run;
}

// Where the changes are, or why they are nowhere.
std::string PatchNote(const forge::Forge& forge, const PatchOutcome& patch) {
  std::string text;
  if (patch.number > 0) {
    text = "The changes are in " + ReferenceTo(forge.capabilities(), patch.number) + ".";
  } else if (!patch.commit.empty()) {
    text = "The changes are in the commit " + patch.commit + " on the branch " +
           codec::MarkdownCode(patch.branch, 250) + ".";
  }
  if (!patch.refused.empty()) {
    text += std::string(text.empty() ? "" : " ") +
            "The changes were not delivered: " + codec::MarkdownText(patch.refused, 500) + ".";
  }
  return text.empty() ? "" : "> [!NOTE]\n> " + text + "\n\n";
}

forge::StickyComment CommentOf(const forge::Forge& forge, const Target& target,
                               const report::PostedReport& report, const Outcome& outcome,
                               const std::string& rules) {
  forge::StickyComment comment;
  comment.full_text_at = target.full_text_at;
  if (outcome.moved_on) {
    comment.body = "> [!NOTE]\n> The " + std::string(forge.capabilities().proposal) +
                   " has changed since this run, so findings are listed here and not beside their "
                   "lines.\n\n";
  }
  comment.body += PatchNote(forge, outcome.patch) + rules + report.summary_markdown;
  return comment;
}

// One post, part by part. A part that fails does not keep the others back.
class Poster {
 public:
  Poster(forge::Forge& forge, const Target& target, const Parts& parts,
         const report::PostedReport& report, Deadline deadline)
      : forge_(forge),
        target_(target),
        parts_(parts),
        report_(report),
        deadline_(deadline),
        patch_(forge, parts.patch, report),
        reviewer_(forge, target, patch_, deadline) {}

  // The most important first: a forge that hangs takes the time of what comes after.
  Outcome Post() {
    const bool delivers = parts_.patch.way != PatchWay::kNone;
    if (delivers) Settle(PreparePatch().Context("delivering the changes"), kPatchPart);
    LookAtHead();
    if (parts_.comment) PostComment();
    if (outcome_.late) return std::move(outcome_);
    if (parts_.review) PostReview();
    if (delivers) DeliverPatch();
    PostAboutCommit();
    // Again, with where the changes are.
    if (parts_.comment && !PatchNote(forge_, outcome_.patch).empty()) PostComment();
    if (!parts_.labels.empty()) Label();
    return std::move(outcome_);
  }

 private:
  // What was asked for and is not done is told, and no success. The first failure that another
  // attempt may mend goes before the others.
  void Settle(const Status& part, const std::string& name) {
    if (part.ok()) return;
    const Error& error = part.error();
    outcome_.refused.push_back(name + ": " + error.what +
                               (error.hint.empty() ? "" : " (" + error.hint + ")"));
    if (name == kRulesNote) return;  // The comment went without it.
    bool passing = error.code == Code::kTemporary || error.code == Code::kSetup;
    bool before = !outcome_.ended.ok() && outcome_.ended.error().code != Code::kTemporary &&
                  outcome_.ended.error().code != Code::kSetup;
    if (outcome_.ended.ok() || (passing && before)) outcome_.ended = error;
  }

  Status ReadProposal() {
    if (proposal_ || target_.place.number == 0) return Ok();
    proposal_ = TRY(forge_.reviews().ReadProposal(deadline_));
    return Ok();
  }

  // What the pull request would change about the rules of runs.
  Result<std::string> RulesNote() {
    TRY(ReadProposal());
    const std::vector<forge::DiffFile>& diff = *TRY(reviewer_.ReadDiff());
    return DescribePolicyChange(forge_, *proposal_, diff, deadline_);
  }

  Status PreparePatch() {
    TRY(ReadProposal());
    return patch_.Prepare(proposal_ ? &*proposal_ : nullptr, deadline_);
  }

  // Whether the pull request is still what the run saw. A failure is that of the part which needs
  // to know.
  void LookAtHead() {
    if (target_.place.number == 0 || !(parts_.comment || parts_.review)) return;
    looked_ = ReadProposal();
    if (!looked_.ok()) return;
    const std::string& seen = report_.record.event.head_sha;
    const bool moved = !seen.empty() && seen != proposal_->head_sha;
    outcome_.moved_on = moved && !patch_.moved_by_us();
  }

  void PostReview() {
    if (!looked_.ok()) {
      return SettleReview(Status(looked_).Context("posting the review"));
    }
    SettleReview(reviewer_.Run(report_, *proposal_, outcome_.moved_on, outcome_)
                     .Context("posting the review"));
  }

  void SettleReview(const Status& posted) {
    if (!posted.ok()) {
      outcome_.undelivered = RemarksOf(report_, {});
      outcome_.delivered = {};
      outcome_.delivered.in_summary = static_cast<int>(outcome_.undelivered.size());
    }
    Settle(posted, "review");
  }

  void DeliverPatch() {
    Settle(patch_.Deliver(report_.summary_markdown, deadline_).Context("delivering the changes"),
           kPatchPart);
    outcome_.patch = patch_.outcome();
    const std::string& refused = outcome_.patch.refused;
    if (refused.empty()) return;
    if (outcome_.patch.told) {
      outcome_.refused.push_back(std::string(kPatchPart) + ": " + refused);
    } else {
      Settle(Error{Code::kRefused, refused}, kPatchPart);
    }
  }

  // The commit that the report is about, once the forge or the event says that it is the head: a
  // report's own word could put a status or an alert on any commit.
  Result<std::string> JudgedCommit() {
    TRY(ReadProposal());
    const std::string& seen = report_.record.event.head_sha;
    const std::string& head = proposal_ ? proposal_->head_sha : target_.head_sha;
    if (seen.empty()) {
      return Error{Code::kRefused, "the report does not say which commit it is about"};
    }
    if (seen == head || patch_.moved_by_us()) return seen;
    return Error{Code::kRefused, "the report is about another commit than the head"};
  }

  Status PostCheck(forge::CheckRun run) {
    run.head_sha = TRY(JudgedCommit());
    return forge_.PostCheckRun(run, deadline_);
  }

  Status PostStatus(const forge::CheckRun& run) {
    forge::CommitStatus status;
    status.sha = TRY(JudgedCommit());
    status.context = run.name;
    status.success = run.conclusion != "failure";  // A status has no "neutral".
    status.description = run.title;
    status.target_url = target_.run_url;
    if (forge_.capabilities().status_of_proposal) {
      status.sha = proposal_->head_sha;
      status.ref = proposal_->from_fork ? "" : proposal_->head_ref;
    }
    return forge_.KeepStatus(status, deadline_);
  }

  Status PostSarif() {
    forge::SarifUpload upload;
    upload.commit_sha = TRY(JudgedCommit());
    upload.ref = target_.place.number > 0
                     ? "refs/pull/" + std::to_string(target_.place.number) + "/head"
                     : "refs/heads/" + parts_.patch.base;
    upload.sarif = report::RenderSarif(report_.record);
    return forge_.UploadSarif(upload, deadline_);
  }

  void PostAboutCommit() {
    forge::CheckRun run = CheckRunOf(target_, report_);
    if (parts_.check) Settle(PostCheck(run).Context("posting the check run"), "check");
    if (parts_.status) Settle(PostStatus(run).Context("setting the commit status"), "status");
    if (parts_.sarif) Settle(PostSarif().Context("uploading SARIF"), "sarif");
  }

  // A comment about a later run, or about what is the head by now, is not overwritten.
  forge::StickyComment Stamped(forge::StickyComment comment) const {
    const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
    const int64_t started = std::min(report_.record.started_at_ms, now);
    const std::string& seen = report_.record.event.head_sha;
    comment.stamp = forge::CommentStamp{started, seen};
    const std::string head = proposal_ && outcome_.moved_on ? proposal_->head_sha : "";
    comment.stays = [started, now, head](const forge::CommentStamp& there) {
      const bool later = there.started_ms > started && there.started_ms <= now + kClockSkewMs;
      return later || (!head.empty() && there.head_sha == head);
    };
    return comment;
  }

  void PostComment() {
    // Where it cannot be read, the comment goes without it, and that is told.
    Result<std::string> rules = RulesNote().Context("comparing the rules of the pull request");
    std::string note;
    if (rules.ok()) {
      note = std::move(rules).value();
    } else {
      Settle(std::move(rules).error(), kRulesNote);
    }
    forge::StickyComment text = Stamped(CommentOf(forge_, target_, report_, outcome_, note));
    Result<forge::CommentOutcome> comment =
        forge::KeepComment(forge_, target_.marker_key, text, deadline_)
            .Context("posting the comment");
    if (!comment.ok()) return Settle(std::move(comment).error(), kCommentPart);
    const bool created = outcome_.comment.created;
    outcome_.comment = std::move(comment).value();
    outcome_.comment.created |= created;
    outcome_.late = outcome_.comment.stayed;
  }

  // The pull request that carries the changes, or else the one that the report is about.
  void Label() {
    int64_t number = outcome_.patch.number > 0 ? outcome_.patch.number : target_.place.number;
    if (number == 0) return;
    Status added = forge_.AddLabels(number, parts_.labels, deadline_);
    Settle(std::move(added).Context("adding labels"), "label");
  }

  forge::Forge& forge_;
  const Target& target_;
  const Parts& parts_;
  const report::PostedReport& report_;
  Deadline deadline_;
  PatchDelivery patch_;
  Reviewer reviewer_;
  std::optional<forge::Proposal> proposal_;
  Status looked_ = Ok();  // Of LookAtHead().
  Outcome outcome_;
};

}  // namespace

Outcome PostToPullRequest(forge::Forge& forge, const Target& target, const Parts& parts,
                          const report::PostedReport& report, Deadline deadline) {
  return Poster(forge, target, parts, report, deadline).Post();
}

}  // namespace post
