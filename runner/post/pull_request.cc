// SPDX-License-Identifier: Apache-2.0
#include "post/pull_request.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "codec/data/digest.h"
#include "forge/comment.h"
#include "forge/gitea_review.h"
#include "forge/github_checks.h"
#include "forge/github_review.h"
#include "report/findings.h"

namespace post {
namespace {

constexpr int kRoundsMax = 3;
constexpr char kCommentPart[] = "comment";

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

std::unique_ptr<forge::Reviews> ReviewsOf(forge::Client& client, const Target& target) {
  if (target.gitea) {
    return std::make_unique<forge::GiteaReviews>(client, target.repository, target.number);
  }
  return std::make_unique<forge::GitHubReviews>(client, target.repository, target.number);
}

// The review, until each remark has its place.
class Reviewer {
 public:
  Reviewer(forge::Client& client, const Target& target, Deadline deadline)
      : client_(client),
        target_(target),
        deadline_(deadline),
        reviews_(ReviewsOf(client, target)) {}

  Status Run(const report::PostedReport& report, Outcome& outcome) {
    bool speaks = !report.patch.empty() ||
                  std::any_of(report.record.findings.begin(), report.record.findings.end(),
                              [](const report::Finding& finding) {
                                return finding.source == report::FindingSource::kAgent;
                              });
    if (!speaks) {  // But an earlier report may have.
      threads_ = TRY(reviews_->ReadThreads(deadline_));
      outcome.delivered.resolved = TRY(Tidy());
      return Ok();
    }
    forge::Proposal proposal = TRY(reviews_->ReadProposal(deadline_));
    const std::string& seen = report.record.event.head_sha;
    outcome.moved_on = !seen.empty() && seen != proposal.head_sha;
    head_sha_ = proposal.head_sha;
    std::vector<forge::DiffFile> diff = TRY(reviews_->ReadFiles(deadline_));
    placed_ = Place(RemarksOf(report, diff), diff, outcome.moved_on);
    Status posted = PostAll();
    Count(outcome);
    if (!posted.ok()) return posted;
    outcome.delivered.resolved = TRY(Tidy());
    return Ok();
  }

 private:
  // What is to be posted and not there. `placed_` keeps all.
  Result<std::vector<Placed*>> Missing() {
    threads_ = TRY(reviews_->ReadThreads(deadline_));
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
      bool again = CanWait(posted.error()) && client_.may_have_arrived();
      if (!again || round == kRoundsMax) return posted;
    }
  }

  Status PostOnce(const std::vector<Placed*>& missing) {
    std::vector<forge::ReviewComment> comments;
    size_t suggestions = 0;
    for (const Placed* placed : missing) {
      if (placed->spot != Spot::kLines) continue;
      const Remark& remark = placed->remark;
      suggestions += remark.suggestion ? 1 : 0;
      comments.push_back({remark.path, remark.line, remark.end_line, TextOf(remark)});
    }
    if (!comments.empty()) {
      std::string text = forge::RenderMarker(target_.marker_key) + "\n" +
                         std::to_string(comments.size()) +
                         (comments.size() == 1 ? " comment" : " comments");
      if (suggestions > 0) {
        text += ", " + std::to_string(suggestions) + " with a change that you can apply";
      }
      Status posted = reviews_->Post(head_sha_, text + ".\n", comments, deadline_);
      // A line is not where the forge's own list of files said: none of them arrived.
      if (!posted.ok() && client_.status() == 422) {
        for (Placed* placed : missing) placed->spot = Spot::kFile;
      } else {
        TRY(std::move(posted));
      }
    }
    size_t on_files = 0;
    for (Placed* placed : missing) {
      if (placed->spot != Spot::kFile) continue;
      if (on_files++ >= PlacementLimits().files_max) {
        placed->spot = Spot::kSummary;
        continue;
      }
      Status posted =
          reviews_->PostOnFile(head_sha_, placed->remark.path, TextOf(placed->remark), deadline_);
      if (posted.ok()) continue;
      if (posted.error().code != Code::kInvalid) return posted;
      placed->spot = Spot::kSummary;
    }
    return Ok();
  }

  std::string TextOf(const Remark& remark) const {
    std::string text = MarkerOf(target_, remark) + "\n";
    if (remark.line > 0) return text + RenderRemark(remark, "suggestion");
    return text + RenderRemark(remark, "");
  }

  void Count(Outcome& outcome) const {
    for (const Placed& placed : placed_) {
      int& count = placed.spot == Spot::kLines  ? outcome.delivered.on_lines
                   : placed.spot == Spot::kFile ? outcome.delivered.on_files
                                                : outcome.delivered.in_summary;
      ++count;
    }
  }

  // Resolves threads of ours that no remark stands for any more, or that were posted anew
  // elsewhere, and takes back what another post created at the same moment: the oldest stays.
  Result<int> Tidy() {
    std::set<std::string> wanted;
    for (const Placed& placed : placed_) {
      if (placed.spot != Spot::kSummary) wanted.insert(MarkerOf(target_, placed.remark));
    }
    if (!wanted.empty() && !client_.dry_run()) threads_ = TRY(reviews_->ReadThreads(deadline_));
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
      if (marker.empty() || thread.resolved) continue;
      auto kept = oldest.find(marker);
      bool gone = !wanted.contains(marker) || thread.outdated;
      if (gone) {
        TRY(reviews_->Resolve(thread.id, deadline_));
        ++resolved;
      } else if (kept != oldest.end() && thread.first_id > kept->second && thread.comments == 1) {
        TRY(reviews_->DeleteComment(thread.first_id, deadline_));
      }
    }
    return resolved;
  }

  forge::Client& client_;
  const Target& target_;
  Deadline deadline_;
  std::unique_ptr<forge::Reviews> reviews_;
  std::string head_sha_;
  std::vector<Placed> placed_;
  std::vector<forge::ReviewThread> threads_;
};

forge::CheckRun CheckRunOf(const Target& target, const report::PostedReport& report) {
  forge::CheckRun run;
  run.name = "agentic-ci (" + target.marker_key + ")";
  run.head_sha = report.record.event.head_sha;
  run.details_url = target.run_url;
  run.summary = report.summary_markdown;
  run.title = report.summary_markdown.substr(0, report.summary_markdown.find('\n'));
  run.title.erase(0, run.title.find_first_not_of("# "));
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

forge::StickyComment CommentOf(const Target& target, const report::PostedReport& report,
                               const Outcome& outcome) {
  forge::StickyComment comment;
  comment.repository = target.repository;
  comment.proposal_number = target.number;
  comment.marker_key = target.marker_key;
  comment.full_text_at = target.full_text_at;
  if (outcome.moved_on) {
    comment.body =
        "> [!NOTE]\n> The pull request has changed since this run, so findings are listed here and "
        "not beside their lines.\n\n";
  }
  comment.body += report.summary_markdown;
  return comment;
}

}  // namespace

Outcome PostToPullRequest(forge::Client& client, const Target& target, const Parts& parts,
                          const report::PostedReport& report, Deadline deadline) {
  Outcome outcome;
  auto settle = [&outcome](const Status& part, const std::string& name) {
    if (part.ok()) return;
    const Error& error = part.error();
    outcome.refused.push_back(name + ": " + error.what +
                              (error.hint.empty() ? "" : " (" + error.hint + ")"));
    // What the forge does not permit, or does not have, is told and no failure: the comment has it.
    bool passing = error.code == Code::kTemporary || error.code == Code::kSetup;
    if ((passing || name == kCommentPart) && outcome.ended.ok()) outcome.ended = error;
  };
  if (parts.review) {
    Reviewer reviewer(client, target, deadline);
    Status posted = reviewer.Run(report, outcome).Context("posting the review");
    if (!posted.ok()) {
      outcome.undelivered = RemarksOf(report, {});
      outcome.delivered = {};
      outcome.delivered.in_summary = static_cast<int>(outcome.undelivered.size());
    }
    settle(posted, "review");
  }
  if (parts.check && !report.record.event.head_sha.empty()) {
    settle(forge::PostCheckRun(client, target.repository, CheckRunOf(target, report), deadline)
               .Context("posting the check run"),
           "check");
  }
  if (parts.comment) {
    Result<forge::CommentOutcome> comment =
        forge::KeepComment(client, CommentOf(target, report, outcome), deadline)
            .Context("posting the comment");
    if (comment.ok()) {
      outcome.comment = std::move(comment).value();
    } else {
      settle(std::move(comment).error(), kCommentPart);
    }
  }
  return outcome;
}

}  // namespace post
