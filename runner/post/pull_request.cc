// SPDX-License-Identifier: Apache-2.0
#include "post/pull_request.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "forge/comment.h"
#include "post/policy_change.h"
#include "report/findings.h"

namespace post {
namespace {

constexpr int kRoundsMax = 3;
constexpr char kCommentPart[] = "comment";
constexpr char kPatchPart[] = "changes";

bool CanWait(const Error& error) { return error.code == Code::kTemporary; }

// "<!-- agentic-ci:KEY:FINGERPRINT -->"
std::string MarkerOf(const Target& target, const Remark& remark) {
  return forge::RenderMarker(target.marker_key + ":" + remark.fingerprint);
}

// Every marker of this key begins so.
std::string MarkerStem(const Target& target) {
  std::string marker = forge::RenderMarker(target.marker_key + ":");
  return marker.substr(0, marker.size() - std::string_view(" -->").size());
}

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

  // `known`: the pull request, where it was read already.
  Status Run(const report::PostedReport& report, const std::optional<forge::Proposal>& known,
             Outcome& outcome) {
    const bool with_changes = !patch_.on_proposal();
    bool speaks = (with_changes && !report.patch.empty()) ||
                  std::any_of(report.record.findings.begin(), report.record.findings.end(),
                              [](const report::Finding& finding) {
                                return finding.source == report::FindingSource::kAgent;
                              });
    if (!speaks) {  // But an earlier report may have.
      threads_ = TRY(reviews_.ReadThreads(deadline_));
      outcome.delivered.resolved = TRY(Tidy());
      return Ok();
    }
    forge::Proposal proposal = known ? *known : TRY(reviews_.ReadProposal(deadline_));
    const std::string& seen = report.record.event.head_sha;
    const bool moved = !seen.empty() && seen != proposal.head_sha;
    outcome.moved_on = moved && !patch_.moved_by_us();
    head_sha_ = proposal.head_sha;
    const std::vector<forge::DiffFile>& diff = *TRY(ReadDiff());
    placed_ = Place(RemarksOf(report, diff, with_changes), diff, moved);
    Status posted = PostAll();
    Count(outcome);
    if (!posted.ok()) return posted;
    outcome.delivered.resolved = TRY(Tidy());
    return Ok();
  }

 private:
  // What is to be posted and not there. `placed_` keeps all.
  Result<std::vector<Placed*>> Missing() {
    threads_ = TRY(reviews_.ReadThreads(deadline_));
    std::vector<Placed*> missing;
    for (Placed& placed : placed_) {
      if (placed.spot == Spot::kSummary) continue;
      std::string marker = MarkerOf(target_, placed.remark);
      bool there = std::any_of(threads_.begin(), threads_.end(), [&](const auto& thread) {
        if (!thread.ours || !forge::CarriesMarker(thread.first_text, marker)) return false;
        // A thread that people resolved is settled; one that only moved is posted where it is now.
        return !thread.outdated || (thread.resolved && !thread.resolved_by_us);
      });
      if (!there) missing.push_back(&placed);
    }
    return missing;
  }

  // Each round starts from what is there, so that it does not matter where an earlier one stopped.
  Status PostAll() {
    for (int round = 1;; ++round) {
      std::vector<Placed*> missing = TRY(Missing());
      if (missing.empty()) return Ok();
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
      if (on_files++ >= PlacementLimits().files_max) {
        placed->spot = Spot::kSummary;
        continue;
      }
      Status posted =
          reviews_.PostOnFile(head_sha_, placed->remark.path, TextOf(placed->remark), deadline_);
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
      suggestions += remark.suggestion ? 1 : 0;
      comments.push_back({remark.path, remark.line, remark.end_line, TextOf(remark)});
    }
    std::string text = forge::RenderMarker(target_.marker_key) + "\n" +
                       std::to_string(comments.size()) +
                       (comments.size() == 1 ? " comment" : " comments");
    if (suggestions > 0) {
      text += ", " + std::to_string(suggestions) + " with a change that you can apply";
    }
    Status posted = reviews_.Post(head_sha_, text + ".\n", comments, deadline_);
    if (posted.ok() || posted.error().code != Code::kInvalid) return posted;
    // A line is not where the forge's own list of files said: none of them arrived.
    for (Placed* placed : batch) placed->spot = Spot::kFile;
    return Ok();
  }

  std::string TextOf(const Remark& remark) const {
    std::string text = MarkerOf(target_, remark) + "\n";
    std::string fence;
    if (remark.line > 0) {
      fence = reviews_.SuggestionFence(remark.end_line - remark.line + 1);
    }
    return text + RenderRemark(remark, fence);
  }

  void Count(Outcome& outcome) const {
    for (const Placed& placed : placed_) {
      int& count = placed.spot == Spot::kLines  ? outcome.delivered.on_lines
                   : placed.spot == Spot::kFile ? outcome.delivered.on_files
                                                : outcome.delivered.in_summary;
      ++count;
    }
  }

  // Resolves our threads that no longer have a remark, or that were posted again elsewhere, and
  // deletes what another post created at the same moment: the oldest stays.
  Result<int> Tidy() {
    std::set<std::string> wanted;
    for (const Placed& placed : placed_) {
      // Lines that only our own commit moved keep the threads they have.
      bool stays = placed.spot != Spot::kSummary || patch_.moved_by_us();
      if (stays) wanted.insert(MarkerOf(target_, placed.remark));
    }
    if (!wanted.empty() && !forge_.dry_run()) threads_ = TRY(reviews_.ReadThreads(deadline_));
    std::map<std::string, int64_t> oldest;  // Marker to the comment that stays.
    std::string stem = MarkerStem(target_);
    auto marker_of = [&](const forge::ReviewThread& thread) {
      if (!thread.ours || !thread.first_text.starts_with(stem)) return std::string();
      return thread.first_text.substr(0, thread.first_text.find('\n'));
    };
    for (const forge::ReviewThread& thread : threads_) {
      std::string marker = marker_of(thread);
      if (marker.empty() || thread.resolved || thread.outdated) continue;
      auto [at, fresh] = oldest.emplace(marker, thread.first_id);
      if (!fresh) at->second = std::min(at->second, thread.first_id);
    }
    int resolved = 0;
    for (const forge::ReviewThread& thread : threads_) {
      std::string marker = marker_of(thread);
      if (marker.empty() || thread.resolved || thread.hidden) continue;
      auto kept = oldest.find(marker);
      bool gone = !wanted.contains(marker) || thread.outdated;
      if (gone) {
        Status done = reviews_.Resolve(thread.id, deadline_);
        // GITHUB_TOKEN may resolve threads only with `contents: write`, and hide comments without.
        bool may_hide = !done.ok() && done.error().code == Code::kRefused;
        if (may_hide && reviews_.Hide(thread, deadline_).ok()) done = Ok();
        TRY(std::move(done));
        ++resolved;
      } else if (kept != oldest.end() && thread.first_id > kept->second && thread.comments == 1) {
        TRY(reviews_.DeleteComment(thread.first_id, deadline_));
      }
    }
    return resolved;
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
};

forge::CheckRun CheckRunOf(const Target& target, const report::PostedReport& report) {
  forge::CheckRun run;
  run.name = "agentic-ci (" + target.marker_key + ")";
  run.head_sha = report.record.event.head_sha;
  run.details_url = target.run_url;
  run.summary = report.summary_markdown;
  run.title = report.verdict;
  bool success = report.record.outcome.kind == report::OutcomeKind::kSuccess;
  bool errors = false;
  for (const report::Finding& finding : report::AllFindings(report.record)) {
    errors |= finding.severity == report::Severity::kError;
    run.annotations.push_back({LevelOf(finding.severity), finding.rule, finding.message,
                               finding.path, finding.line, finding.end_line});
  }
  run.conclusion = !success ? "failure" : errors ? "neutral" : "success";
  run.external_id =
      codec::Sha256Hex(run.summary + run.head_sha + std::to_string(report.record.started_at_ms))
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
  comment.marker_key = target.marker_key;
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

  Outcome Post() {
    if (parts_.patch.way != PatchWay::kNone) {
      Settle(PreparePatch().Context("delivering the changes"), kPatchPart);
    }
    if (parts_.review) PostReview();
    if (parts_.patch.way != PatchWay::kNone) DeliverPatch();
    PostAboutCommit();
    if (parts_.comment) PostComment();
    if (!parts_.labels.empty()) Label();
    return std::move(outcome_);
  }

 private:
  // What the forge does not permit, or does not have, is told and no failure: the comment has it.
  // Changes that were asked for and are nowhere are a failure.
  void Settle(const Status& part, const std::string& name) {
    if (part.ok()) return;
    const Error& error = part.error();
    outcome_.refused.push_back(name + ": " + error.what +
                               (error.hint.empty() ? "" : " (" + error.hint + ")"));
    bool passing = error.code == Code::kTemporary || error.code == Code::kSetup;
    bool must = name == kCommentPart || name == kPatchPart;
    if ((passing || must) && outcome_.ended.ok()) outcome_.ended = error;
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

  void PostReview() {
    Status posted = reviewer_.Run(report_, proposal_, outcome_).Context("posting the review");
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

  // A report's own word could put a status or an alert on any commit: it must be about the head.
  Status CheckCommit() {
    TRY(ReadProposal());
    const std::string& seen = report_.record.event.head_sha;
    const std::string& head = proposal_ ? proposal_->head_sha : target_.head_sha;
    if (seen == head || patch_.moved_by_us()) return Ok();
    return Error{Code::kRefused, "the report is about another commit than the head"};
  }

  Status PostStatus(const forge::CheckRun& run) {
    TRY(CheckCommit());
    // A status has no "neutral".
    forge::CommitStatus status{run.head_sha,   "", run.name, run.conclusion != "failure", run.title,
                               target_.run_url};
    if (forge_.capabilities().status_of_proposal) {
      status.sha = proposal_->head_sha;
      status.ref = proposal_->from_fork ? "" : proposal_->head_ref;
    }
    return forge_.KeepStatus(status, deadline_);
  }

  Status PostSarif(const forge::CheckRun& run) {
    TRY(CheckCommit());
    std::string ref = target_.place.number > 0
                          ? "refs/pull/" + std::to_string(target_.place.number) + "/head"
                          : "refs/heads/" + parts_.patch.base;
    forge::SarifUpload upload{run.head_sha, ref, report::RenderSarif(report_.record)};
    return forge_.UploadSarif(upload, deadline_);
  }

  void PostAboutCommit() {
    forge::CheckRun run = CheckRunOf(target_, report_);
    if (parts_.check && !run.head_sha.empty()) {
      Settle(forge_.PostCheckRun(run, deadline_).Context("posting the check run"), "check");
    }
    if (parts_.status) Settle(PostStatus(run).Context("setting the commit status"), "status");
    if (parts_.sarif) Settle(PostSarif(run).Context("uploading SARIF"), "sarif");
  }

  void PostComment() {
    // Where it cannot be read, the comment goes without it, and that is told.
    Result<std::string> rules = RulesNote().Context("comparing the rules of the pull request");
    std::string note;
    if (rules.ok()) {
      note = std::move(rules).value();
    } else {
      Settle(std::move(rules).error(), "rules");
    }
    Result<forge::CommentOutcome> comment =
        forge::KeepComment(forge_, CommentOf(forge_, target_, report_, outcome_, note), deadline_)
            .Context("posting the comment");
    if (comment.ok()) {
      outcome_.comment = std::move(comment).value();
    } else {
      Settle(std::move(comment).error(), kCommentPart);
    }
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
  Outcome outcome_;
};

}  // namespace

Outcome PostToPullRequest(forge::Forge& forge, const Target& target, const Parts& parts,
                          const report::PostedReport& report, Deadline deadline) {
  return Poster(forge, target, parts, report, deadline).Post();
}

}  // namespace post
