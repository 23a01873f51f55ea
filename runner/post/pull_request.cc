// SPDX-License-Identifier: Apache-2.0
#include "post/pull_request.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "forge/comment.h"
#include "post/line_follower.h"
#include "post/policy_change.h"
#include "post/reviewer.h"
#include "post/since.h"
#include "report/findings.h"
#include "spending/store.h"

namespace post {
namespace {

constexpr char kCommentPart[] = "comment";
constexpr char kReviewPart[] = "review";
constexpr char kPatchPart[] = "changes";
constexpr char kRulesNote[] = "rules";
constexpr int64_t kClockSkewMs = 600'000;  // A stamp beyond it says nothing.

forge::CheckRun CheckRunOf(const Target& target, const report::PostedReport& report) {
  forge::CheckRun run;
  run.name = "agentic-ci (" + target.marker_key + ")";
  run.details_url = target.run_url;
  run.summary = report.summary_markdown;
  run.title = report.verdict;
  const report::OutcomeKind kind = report.record.outcome.kind;
  const bool skipped = kind == report::OutcomeKind::kSkipped;
  const bool success = skipped || kind == report::OutcomeKind::kSuccess;
  bool neutral = skipped;
  for (const report::Finding& finding : report::ListFindings(report.record)) {
    neutral |= finding.severity == report::Severity::kError;
  }
  run.conclusion = !success ? "failure" : neutral ? "neutral" : "success";
  run.external_id = codec::Sha256Hex(run.summary + report.record.event.head_sha +
                                     std::to_string(report.record.started_at_ms))
                        .substr(0, 32);
  return run;
}

// Says where the changes are, and what is not done for them.
std::string PatchNote(const forge::Forge& forge, const PatchOutcome& patch) {
  const forge::Capabilities& can = forge.capabilities();
  const std::string why = codec::MarkdownText(patch.refused, 500);
  const std::string changes =
      patch.incomplete ? "The changes, which are incomplete," : "The changes";
  std::string text;
  if (patch.number > 0 && !patch.closed) {
    text = changes + " are in " + ReferenceTo(can, patch.number);
    if (!why.empty()) text += ", whose text was not updated: " + why;
  } else if (!patch.commit.empty()) {
    text = changes + " are in the commit " + patch.commit + " on the branch " +
           codec::MarkdownCode(patch.branch, 250);
    if (!why.empty()) text += ", and in no open " + std::string(can.proposal) + ": " + why;
  } else if (!why.empty()) {
    text = "The changes were not delivered: " + why;
  }
  if (!patch.how.empty() && why.empty()) text += ": " + codec::MarkdownText(patch.how, 500);
  return text.empty() ? "" : "> [!NOTE]\n> " + text + ".\n\n";
}

forge::StickyComment CommentOf(const forge::Forge& forge, const Target& target,
                               const Outcome& outcome, const std::string& rules,
                               const std::string& summary) {
  forge::StickyComment comment;
  comment.full_text_at = target.full_text_at;
  if (outcome.moved_on) {
    comment.body = "> [!NOTE]\n> The " + std::string(forge.capabilities().proposal) +
                   " has changed since this run, so findings are listed here and not on their "
                   "lines.\n\n";
  }
  comment.body += PatchNote(forge, outcome.patch) + rules + summary;
  return comment;
}

// Returns the remarks whose finding is in no line of the comment. The agent's other changes are not
// in its table: they are a patch.
std::vector<Remark> NotShown(const std::string& comment, std::vector<Remark> remarks) {
  std::set<std::string_view> lines;
  for (size_t at = 0; at < comment.size();) {
    const size_t end = std::min(comment.find('\n', at), comment.size() - 1) + 1;
    lines.insert(std::string_view(comment).substr(at, end - at));
    at = end;
  }
  std::erase_if(remarks, [&](const Remark& remark) {
    return remark.finding == nullptr || lines.contains(report::RenderFindingRow(*remark.finding)) ||
           lines.contains(report::RenderFindingItem(*remark.finding));
  });
  return remarks;
}

// One post, part by part. A part that fails does not keep the others back.
class Poster {
 public:
  Poster(forge::Forge& forge, const Target& target, const Parts& parts,
         const report::PostedReport& report, Deadline deadline)
      : forge_(forge),
        target_(target),
        parts_(AtCommits(parts)),
        report_(report),
        deadline_(deadline),
        patch_(forge, parts_.patch, report),
        reviewer_(forge, target.marker_key, deadline) {}

  // The most important first: a forge that hangs takes the time of what comes after.
  Outcome Post() {
    // Also of a report that is late for everything else.
    if (parts_.budget) Finish(CountCost().Context("counting what the run has spent"), "budget");
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
  // Reports a part that was asked for and is not done; it is not a success. The first failure that
  // another attempt may mend goes before the others.
  void Settle(const Status& part, const std::string& name) {
    if (part.ok()) return;
    if (name != kRulesNote) Mark(name, &outcome_.failed, &outcome_.made);
    const Error& error = part.error();
    outcome_.refused.push_back(name + ": " + error.what +
                               (error.hint.empty() ? "" : " (" + error.hint + ")"));
    if (name == kRulesNote) return;  // The comment went without it.
    bool passing = error.code == Code::kTemporary || error.code == Code::kSetup;
    bool before = !outcome_.ended.ok() && outcome_.ended.error().code != Code::kTemporary &&
                  outcome_.ended.error().code != Code::kSetup;
    if (outcome_.ended.ok() || (passing && before)) outcome_.ended = error;
  }

  // Moves `name` from one list to the other, at the end, once.
  static void Mark(const std::string& name, std::vector<std::string>* to,
                   std::vector<std::string>* from) {
    std::erase(*from, name);
    if (std::find(to->begin(), to->end(), name) == to->end()) to->push_back(name);
  }

  // Reports the result of a part that is asked for, once it is tried.
  void Finish(const Status& part, const std::string& name) {
    if (part.ok()) Mark(name, &outcome_.made, &outcome_.failed);
    Settle(part, name);
  }

  // A tag may have the branch's name, so what is trusted is read at a commit: all of it at one.
  Result<std::string> BaseCommit(const std::string& branch) {
    std::string& commit = base_commits_[branch];
    if (!commit.empty()) return commit;
    commit = TRY(forge_.branches().ReadTip(branch, deadline_)).value_or("");
    if (!commit.empty()) return commit;
    return Error{Code::kNotFound, "there is no branch " + branch};
  }

  Parts AtCommits(Parts parts) {
    auto read_gates = [this, read = std::move(parts.patch.read_gates)](
                          const std::string& branch) -> Result<change::GateLimits> {
      return read(TRY(BaseCommit(branch)));
    };
    parts.patch.read_gates = std::move(read_gates);
    return parts;
  }

  Status ReadProposal() {
    if (proposal_ || target_.place.number == 0) return Ok();
    proposal_ = TRY(forge_.reviews().ReadProposal(deadline_));
    return Ok();
  }

  Status CountCost() {
    auto root = [this]() -> Result<std::string> {
      TRY(ReadProposal());
      if (proposal_) return BaseCommit(proposal_->base_ref);
      if (!target_.head_sha.empty()) return target_.head_sha;
      return Error{Code::kSetup, "the event names no commit of the repository"};
    };
    const std::string today = spending::DayOf(std::time(nullptr));
    const report::BudgetRecord& budget = report_.record.budget;
    const spending::Spent spent{budget.id, today, target_.place.number, budget.spent_usd, false};
    auto enter = [&](spending::Ledger* ledger) { return spending::Enter(ledger, spent, today); };
    return spending::BranchStore(forge_, root).Change(enter, deadline_);
  }

  // Returns what the pull request would change about the rules of runs.
  Result<std::string> RulesNote() {
    TRY(ReadProposal());
    const std::vector<forge::DiffFile>& diff = *TRY(reviewer_.ReadDiff());
    auto base_commit = [this] { return BaseCommit(proposal_->base_ref); };
    return DescribePolicyChange(forge_, *proposal_, base_commit, diff, deadline_);
  }

  Status PreparePatch() {
    TRY(ReadProposal());
    return patch_.Prepare(proposal_ ? &*proposal_ : nullptr, deadline_);
  }

  // Looks whether the pull request is still what the run saw. A failure is that of the part which
  // needs to know.
  void LookAtHead() {
    if (target_.place.number == 0 || !(parts_.comment || parts_.review)) return;
    looked_ = ReadProposal();
    if (!looked_.ok()) return;
    const std::string& seen = report_.record.event.head_sha;
    const bool moved = !seen.empty() && seen != proposal_->head_sha;
    outcome_.moved_on = moved && !patch_.moved_by_us();
  }

  ReviewBasis Basis() const {
    ReviewBasis basis;
    basis.head_sha = proposal_->head_sha;
    basis.moved_on = outcome_.moved_on;
    basis.trusts_lines = !outcome_.moved_on && !patch_.moved_by_us();
    basis.with_changes = !patch_.on_proposal();
    basis.read_gates = [this] { return parts_.patch.read_gates(proposal_->base_ref); };
    return basis;
  }

  void PostReview() {
    if (!looked_.ok()) {
      return SettleReview(Status(looked_).Context("posting the review"));
    }
    Status posted = reviewer_.Run(report_, Basis(), &outcome_.delivered, &outcome_.refused)
                        .Context("posting the review");
    // What lost its place beside lines comes first in the comment now.
    const bool unseen = !NotShown(comment_text_, reviewer_.ForSummary()).empty();
    if (posted.ok() && unseen && !comment_text_.empty()) PostComment();
    SettleReview(posted);
  }

  void SettleReview(const Status& posted) {
    Delivered& delivered = outcome_.delivered;
    if (!posted.ok()) {
      outcome_.undelivered = RemarksOf(report_, {});
      delivered = {};
      delivered.in_summary = static_cast<int>(outcome_.undelivered.size());
    }
    Finish(posted, kReviewPart);
    std::vector<Remark> lost = posted.ok() ? reviewer_.ForSummary() : outcome_.undelivered;
    const bool has_comment = !comment_text_.empty();
    if (has_comment) lost = NotShown(comment_text_, std::move(lost));
    if (lost.empty()) return;
    delivered.nowhere = static_cast<int>(lost.size());
    delivered.in_summary -= delivered.nowhere;
    if (!posted.ok()) return;
    outcome_.undelivered = std::move(lost);
    const std::string what = std::to_string(delivered.nowhere) +
                             " of the findings have no place on a line or a file, and ";
    if (has_comment) {  // It says how many more there are, and no other command would show them.
      outcome_.refused.push_back(kReviewPart + (": " + what + "the comment has no room for them"));
      return;
    }
    Settle(Error{Code::kRefused, what + "there is no comment for them", "--what comment,review"},
           kReviewPart);
  }

  void DeliverPatch() {
    Settle(patch_.Deliver(report_.summary_markdown, deadline_).Context("delivering the changes"),
           kPatchPart);
    outcome_.patch = patch_.outcome();
    const std::string& refused = outcome_.patch.refused;
    const bool made = !outcome_.patch.commit.empty() && refused.empty();
    if (made) Mark(kPatchPart, &outcome_.made, &outcome_.failed);
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

  // Findings without a place are in the summary.
  Result<std::vector<forge::Annotation>> Annotations() {
    std::vector<report::Finding> findings = report::ListFindings(report_.record);
    const bool follows = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
      return !finding.lines_sha256.empty();
    });
    const std::vector<forge::DiffFile> none;
    const bool has_diff = follows && target_.place.number > 0;
    // Lines that cannot be followed are said as the agent gave them.
    const auto diff = has_diff ? reviewer_.ReadDiff() : Result(&none);
    LineFollower follower(diff.ok() ? *diff.value() : none);
    std::vector<forge::Annotation> annotations;
    for (report::Finding& finding : findings) {
      if (finding.path.empty()) continue;
      const HeadLines lines = follower.Find(finding, finding.path);
      if (lines.lost) {
        finding.message.insert(0, SeenLinesText(finding.line, finding.end_line));
      }
      annotations.push_back({LevelOf(finding.severity), finding.rule, std::move(finding.message),
                             finding.path, lines.line, lines.end_line});
    }
    return annotations;
  }

  Status PostCheck(forge::CheckRun run) {
    run.head_sha = TRY(JudgedCommit());
    run.annotations = TRY(Annotations());
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
                     : target_.head_ref;
    if (upload.ref.empty()) {
      return Error{Code::kRefused, "the event does not say which branch or tag the commit is on"};
    }
    upload.sarif = report::RenderSarif(report_.record, target_.marker_key);
    return forge_.UploadSarif(upload, deadline_);
  }

  Status KeepStatement() {
    if (!parts_.statement->bundle.empty()) {
      return forge_.StoreStatement(*parts_.statement, deadline_);
    }
    return Error{Code::kRefused, "the report has no signed statement", "agentic-ci run --attest"};
  }

  void PostAboutCommit() {
    forge::CheckRun run = CheckRunOf(target_, report_);
    if (parts_.check) Finish(PostCheck(run).Context("posting the check run"), "check");
    if (parts_.status) Finish(PostStatus(run).Context("setting the commit status"), "status");
    if (parts_.sarif) Finish(PostSarif().Context("uploading SARIF"), "sarif");
    if (parts_.statement) Finish(KeepStatement().Context("storing the statement"), "statement");
  }

  // A comment about a later run, or about what is the head by now, is not overwritten.
  forge::StickyComment Stamped(forge::StickyComment comment) const {
    const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
    const int64_t started = std::min(report_.record.started_at_ms, now);
    const std::string& seen = report_.record.event.head_sha;
    comment.stamp = forge::CommentStamp{started, seen, FindingWords(report_.record)};
    const std::string head = proposal_ && outcome_.moved_on ? proposal_->head_sha : "";
    comment.stays = [started, now, head](const forge::CommentStamp& there) {
      const bool later = there.started_ms > started && there.started_ms <= now + kClockSkewMs;
      return later || (!head.empty() && there.head_sha == head);
    };
    return comment;
  }

  // What has no other place comes first in the summary's table, which may be cut. `has_diff`: the
  // difference has been read.
  report::SummaryOptions SummaryOptions(bool has_diff) {
    report::SummaryOptions options = report_.options;
    const bool plans = parts_.review && has_diff && looked_.ok();
    if (!plans || !reviewer_.Plan(report_, Basis()).ok()) return options;
    for (const Remark& remark : reviewer_.ForSummary()) options.first.insert(remark.finding);
    return options;
  }

  void PostComment() {
    // If it cannot be read, the comment goes without it, and that is reported.
    Result<std::string> rules = RulesNote().Context("comparing the rules of the pull request");
    std::string note;
    if (rules.ok()) {
      note = std::move(rules).value();
    } else {
      Settle(std::move(rules).error(), kRulesNote);
    }
    report::SummaryOptions options = SummaryOptions(rules.ok());
    const auto render = [&] {
      const bool as_read = options.first.empty() && options.since.empty();
      return CommentOf(
          forge_, target_, outcome_, note,
          as_read ? report_.summary_markdown : report::RenderSummary(report_, options));
    };
    options.since = since_;
    forge::StickyComment text = Stamped(render());
    if (text.body == posted_body_) return;
    text.follow = [&](const forge::CommentStamp& there, std::string_view said) {
      options.since = since_ = DescribeSince(there, said, *text.stamp);
      return text.body = render().body;
    };
    Result<forge::CommentOutcome> comment =
        forge::KeepComment(forge_, target_.marker_key, text, deadline_)
            .Context("posting the comment");
    if (!comment.ok()) return Settle(std::move(comment).error(), kCommentPart);
    if (!comment.value().stayed) Mark(kCommentPart, &outcome_.made, &outcome_.failed);
    comment_text_ =
        forge::RenderComment(target_.marker_key, text.body, text.full_text_at, text.stamp).text;
    posted_body_ = std::move(text.body);
    const bool created = outcome_.comment.created;
    outcome_.comment = std::move(comment).value();
    outcome_.comment.created |= created;
    outcome_.late = outcome_.comment.stayed;
  }

  // The pull request that carries the changes, or else the one that the report is about.
  void Label() {
    const auto& failed = outcome_.failed;
    const bool lacks_own = parts_.patch.way == PatchWay::kPullRequest &&
                           outcome_.patch.number == 0 &&
                           std::find(failed.begin(), failed.end(), kPatchPart) != failed.end();
    if (lacks_own) {
      Settle(Error{Code::kRefused, "they are for the pull request that could not be made"},
             "label");
      return;
    }
    int64_t number = outcome_.patch.number > 0 ? outcome_.patch.number : target_.place.number;
    if (number == 0) return;
    Status added = forge_.AddLabels(number, parts_.labels, deadline_);
    Finish(std::move(added).Context("adding labels"), "label");
  }

  forge::Forge& forge_;
  const Target& target_;
  const Parts parts_;
  const report::PostedReport& report_;
  Deadline deadline_;
  PatchDelivery patch_;
  Reviewer reviewer_;
  std::optional<forge::Proposal> proposal_;
  std::map<std::string, std::string> base_commits_;  // By the branch that each is the end of.
  Status looked_ = Ok();                             // The result of LookAtHead().
  std::string posted_body_;
  std::string since_;         // SummaryOptions::since, of the comment as it stands.
  std::string comment_text_;  // The comment as it stands; empty if there is none.
  Outcome outcome_;
};

}  // namespace

bool CountsCost(const report::BudgetRecord& budget) {
  return budget.place == report::kBudgetOnForge && !budget.counted && budget.spent_usd > 0 &&
         spending::ValidId(budget.id);
}

std::vector<std::string> PermissionsOf(const Parts& parts) {
  std::vector<std::string> permissions = {"pull_requests"};
  if (parts.check) permissions.emplace_back("checks");
  if (parts.status) permissions.emplace_back("statuses");
  if (parts.sarif) permissions.emplace_back("security_events");
  if (parts.statement) permissions.emplace_back("attestations");
  if (parts.patch.way != PatchWay::kNone || parts.budget) permissions.emplace_back("contents");
  return permissions;
}

Outcome PostToPullRequest(forge::Forge& forge, const Target& target, const Parts& parts,
                          const report::PostedReport& report, Deadline deadline) {
  return Poster(forge, target, parts, report, deadline).Post();
}

}  // namespace post
