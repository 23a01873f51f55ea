// SPDX-License-Identifier: Apache-2.0
#include "post/patch_delivery.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "agent/description.h"
#include "attest/trailer.h"
#include "change/capture.h"
#include "change/gate.h"
#include "change/sections/binary_block.h"
#include "change/sections/patch_section.h"
#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "forge/comment.h"
#include "forge/event.h"
#include "report/verdict.h"

namespace post {
namespace {

// The bound on how far back the run's commit may lie on its branch, and this program's own commit
// on the pull request's.
constexpr int kHistoryMax = 100;
constexpr size_t kFilesMax = 100;
constexpr size_t kPatchBytesMax = size_t{4} << 20;
constexpr int kDeliveryRoundsMax = 5;
constexpr int kLooksMax = 3;
constexpr int kLooksAfterLossMax = 20;
constexpr std::chrono::milliseconds kBetweenLooks{300};
constexpr size_t kTitleBytesMax = 200;
constexpr size_t kPathsNamedMax = 5;  // The paths that a sentence names.

std::string MarkerHash(const PatchRequest& request) {
  return codec::Sha256Hex(request.marker_key).substr(0, 16);
}

// The trailer that marks our commits, without its name; empty if the commit has no such trailer.
std::string MarkOf(const std::string& message) {
  return attest::FindTrailer(message, attest::kCommitTrailer).value_or("");
}

std::string Short(const std::string& sha) { return sha.substr(0, 12); }

// Returns whether an error is a refusal: it is reported and ends nothing. A failure is the
// caller's.
bool IsRefusal(const Error& error) {
  return error.code == Code::kRefused || error.code == Code::kInvalid ||
         error.code == Code::kNotFound;
}

// Returns whether there is half a work: a budget ended the run, and no gate has refused what was
// there by then.
bool IsIncomplete(const report::RunRecord& record) {
  return report::EndedByBudget(record.outcome) &&
         std::none_of(record.findings.begin(), record.findings.end(),
                      [](const report::Finding& finding) { return finding.refuses; });
}

std::string Told(const Error& error) {
  return error.what + (error.hint.empty() ? "" : " (" + error.hint + ")");
}

}  // namespace

std::string BranchName(const PatchRequest& request) {
  std::string what = request.number > 0 ? "pull-" + std::to_string(request.number) : request.base;
  return "agentic-ci/" + what + "-" + MarkerHash(request).substr(0, 8);
}

PatchDelivery::PatchDelivery(forge::Forge& forge, const PatchRequest& request,
                             const report::PostedReport& report)
    : forge_(forge),
      request_(request),
      report_(report),
      branches_(forge.branches()),
      way_(request.way) {}

Status PatchDelivery::Refuse(std::string reason, bool told) {
  state_ = State::kSettled;
  outcome_.refused = std::move(reason);
  outcome_.told = told;
  return Ok();
}

// "MARKER/PATCH/BASE": whose commit it is, what is in it, and what it was made for.
std::string PatchDelivery::Trailer() const {
  std::string patch = codec::Sha256Hex(report_.record.changes.prefix + "\n" + report_.patch);
  return MarkerHash(request_) + "/" + patch.substr(0, 32) + "/" + report_.record.event.head_sha;
}

// Forges act on words of a commit's message ("[skip ci]", "closes #1"), so a report may say none:
// a name of an agent has an alphabet without them.
std::string PatchDelivery::Title() const {
  const std::string mark = outcome_.incomplete ? "Incomplete: " : "";
  if (!request_.title.empty()) return mark + codec::NeutralLine(request_.title, kTitleBytesMax);
  const std::string& name = report_.record.agent.name;
  return mark + "Changes by " + (agent::IsAgentName(name) ? name : "the agent") +
         (request_.number > 0 ? " for " + ReferenceTo(forge_.capabilities(), request_.number) : "");
}

std::string PatchDelivery::Message() const {
  std::string message = Title() + "\n\nMade by an agent";
  if (outcome_.incomplete) message += " whose budget was used up before it had finished,";
  if (!request_.run_url.empty()) message += " in " + request_.run_url;
  message += ", for " + Short(report_.record.event.head_sha);
  if (!commit_.merged.empty()) message += ", with a merge of " + Short(commit_.merged);
  message += ".\n\n" + std::string(attest::kCommitTrailer) + ": " + Trailer() + "\n";
  if (!report_.statement_sha256.empty()) {
    message += std::string(attest::kStatementTrailer) + ": " + report_.statement_sha256 + "\n";
  }
  return message;
}

bool PatchDelivery::on_proposal() const {
  return way_ == PatchWay::kCommits && state_ != State::kSettled;
}

Status PatchDelivery::Prepare(const forge::Proposal* proposal, Deadline deadline) {
  if (request_.way == PatchWay::kNone) return Ok();
  outcome_.incomplete = IsIncomplete(report_.record);
  const bool succeeded = report::Succeeded(report_.record.outcome.kind);
  if (report_.patch.empty() || (!succeeded && !outcome_.incomplete)) {
    return Ok();  // Nothing to deliver; the report says how the run ended.
  }
  // People decide about half a work, and no check has seen it.
  if (outcome_.incomplete && way_ == PatchWay::kCommits) way_ = PatchWay::kPullRequest;
  if (proposal != nullptr) proposal_ = *proposal;
  Status looked = JudgePatch();
  if (looked.ok() && outcome_.refused.empty()) looked = Look(deadline);
  if (looked.ok() && state_ == State::kReady) looked = PlanOrDivert(deadline);
  if (looked.ok()) return looked;
  state_ = State::kSettled;  // What is not planned is not delivered.
  return IsRefusal(looked.error()) ? Refuse(Told(looked.error())) : looked;
}

// Judges by what can be known without asking the forge for files.
Status PatchDelivery::JudgePatch() {
  const report::RunRecord& record = report_.record;
  if (proposal_ && proposal_->from_fork) {
    return Refuse("the pull request comes from a fork, whose branches are not written to", true);
  }
  if (proposal_ && !proposal_->open) return Refuse("the pull request is not open", true);
  base_ = proposal_ ? proposal_->head_ref : request_.base;
  if (!forge::ValidRef(base_)) return Refuse("the branch has an unsupported name");
  if (record.event.head_sha.empty()) {
    return Refuse("the report does not say which commit the run was started for");
  }
  const std::string& prefix = record.changes.prefix;
  if (!prefix.empty() &&
      (!prefix.ends_with('/') || !change::ValidPath(prefix.substr(0, prefix.size() - 1)))) {
    return Refuse("the report has an invalid path of the checkout");
  }
  return Ok();
}

Status PatchDelivery::Look(Deadline deadline) {
  return way_ == PatchWay::kCommits ? LookAtProposal(deadline) : LookAtBranch(deadline);
}

// Finds the commit that the run saw: in the branch's history, or, after a force-push, by the job's
// own event. A report alone could name another repository's commit of the forge's network.
Status PatchDelivery::FindSeen(const std::vector<forge::CommitRecord>& history, Deadline deadline) {
  const std::string& seen = report_.record.event.head_sha;
  auto found = std::find_if(history.begin(), history.end(),
                            [&](const forge::CommitRecord& commit) { return commit.sha == seen; });
  if (found != history.end()) {
    seen_ = *found;
    return Ok();
  }
  if (request_.event_head != seen) {
    return Refuse("the run saw " + Short(seen) + ", which is not on the branch " + base_);
  }
  std::vector<forge::CommitRecord> read = TRY(branches_.ReadHistory(seen, 1, deadline));
  if (read.empty() || read.front().sha != seen) {
    return Refuse("the run saw " + Short(seen) + ", which the forge no longer has");
  }
  seen_ = std::move(read.front());
  return Ok();
}

// Delivers on the pull request's branch.
Status PatchDelivery::LookAtProposal(Deadline deadline) {
  const std::string& seen = report_.record.event.head_sha;
  if (!proposal_) return Refuse("there is no pull request to add commits to");
  base_tip_ = TRY(branches_.ReadTip(base_, deadline)).value_or("");
  if (base_tip_.empty()) return Refuse("there is no branch " + base_);
  std::vector<forge::CommitRecord> history =
      TRY(branches_.ReadHistory(base_tip_, kHistoryMax, deadline));
  for (const forge::CommitRecord& commit : history) {
    if (MarkOf(commit.message) != Trailer()) continue;
    const bool on_seen = !commit.parents.empty() && commit.parents.front() == seen;
    state_ = State::kDelivered;
    outcome_.commit = commit.sha;
    outcome_.branch = base_;
    moved_by_us_ = on_seen && commit.sha == base_tip_;
    return Ok();
  }
  history_.clear();
  for (const forge::CommitRecord& commit : history) history_.insert(commit.sha);
  state_ = State::kReady;
  commit_.branch = base_;
  commit_.tip = base_tip_;
  commit_.on = history.front();
  commit_.merges_on = false;
  return FindSeen(history, deadline);
}

// Delivers on a branch of its own, made from the commit that the run saw, whatever came after it.
Status PatchDelivery::LookAtBranch(Deadline deadline) {
  const std::string& seen = report_.record.event.head_sha;
  commit_.branch = request_.branch.empty() ? BranchName(request_) : request_.branch;
  if (commit_.branch == base_) return Refuse("the branch for the changes is the one they are for");
  base_tip_ = TRY(branches_.ReadTip(base_, deadline)).value_or("");
  if (base_tip_.empty()) return Refuse("there is no branch " + base_);
  std::vector<forge::CommitRecord> history =
      TRY(branches_.ReadHistory(base_tip_, kHistoryMax, deadline));
  state_ = State::kReady;
  TRY(FindSeen(history, deadline));
  if (state_ != State::kReady) return Ok();
  commit_.on = seen_;
  commit_.tip = TRY(branches_.ReadTip(commit_.branch, deadline)).value_or("");
  commit_.merges_on = false;
  if (commit_.tip.empty() || commit_.tip == seen) return Ok();
  std::vector<forge::CommitRecord> made = TRY(branches_.ReadHistory(commit_.tip, 1, deadline));
  std::string trailer = MarkOf(made.front().message);
  if (!trailer.starts_with(MarkerHash(request_) + "/")) {
    return Refuse("the branch " + commit_.branch + " has commits that agentic-ci did not make");
  }
  outcome_.branch = commit_.branch;
  if (trailer == Trailer()) {
    state_ = State::kDelivered;
    outcome_.commit = commit_.tip;
  }
  commit_.merges_on = !trailer.ends_with("/" + seen);
  return Ok();
}

// Where the branch has moved and the patch does not fit it any more, a pull request carries it.
Status PatchDelivery::PlanOrDivert(Deadline deadline) {
  outcome_.how.clear();
  const PatchWay planned = way_;
  TRY(Plan(deadline));
  if (way_ == planned || state_ != State::kReady) return Ok();
  TRY(LookAtBranch(deadline));
  return state_ == State::kReady ? Plan(deadline) : Ok();
}

// Plans the files that the commit will have.
Status PatchDelivery::Plan(Deadline deadline) {
  // Forges take each file's content in one request, and each old file is compared.
  const std::vector<change::PatchSection> sections = TRY(change::ReadSections(report_.patch));
  if (sections.size() > kFilesMax || report_.patch.size() > kPatchBytesMax) {
    return Refuse("a commit through the forge has at most " + std::to_string(kFilesMax) +
                  " files and " + codec::RenderSize(kPatchBytesMax) +
                  " of patch; apply changes.patch with git");
  }
  TRY(change::CheckDecodedSize(sections, change::CaptureLimits().patch_bytes_max, deadline));
  const bool moved = commit_.on.sha != seen_.sha;
  change::GateLimits limits = TRY(request_.read_gates(proposal_ ? proposal_->base_ref : base_));
  const CommitTree tree = TRY(CommitTree::Read(branches_, commit_.on.tree, deadline));
  TRY(FindMerged(deadline));
  if (merged_) {
    const CommitTree seen = TRY(CommitTree::Read(branches_, seen_.tree, deadline));
    const CommitTree base = TRY(CommitTree::Read(branches_, merged_->tree, deadline));
    const std::string& prefix = report_.record.changes.prefix;
    const std::vector<forge::FileWrite> files = TRY(PlanFiles(report_.patch, prefix, seen));
    limits.merged = TRY(EqualPaths(files, base));
  }
  TRY(JudgeFiles(std::move(limits), tree));
  if (state_ != State::kReady) return Ok();
  if (deadline.passed()) return Error{Code::kTemporary, "no time is left to deliver the changes"};
  const std::string& prefix = report_.record.changes.prefix;
  if (!moved) {
    commit_.files = TRY(PlanFiles(report_.patch, prefix, tree));
    if (commit_.files.empty()) return Refuse("the patch changes nothing");
  } else {
    const CommitTree seen = TRY(CommitTree::Read(branches_, seen_.tree, deadline));
    commit_.files = TRY(PlanFiles(report_.patch, prefix, seen));
    const std::string why = TRY(FitToHead(seen, tree));
    if (!why.empty()) {
      way_ = PatchWay::kPullRequest;
      outcome_.how = why;
      return Ok();
    }
    if (commit_.files.empty()) return Refuse("the branch already has the changes", true);
  }
  if (merged_ && TRY(KeepsTheBase(tree, deadline))) commit_.merged = merged_->sha;
  planned_on_ = commit_.on.sha;
  commit_.message = Message();
  std::string cannot = branches_.CannotCommit(commit_);
  return cannot.empty() ? Ok() : Refuse(cannot);
}

// Moves the files from the commit that the run saw to the branch's head. Returns why that cannot
// be; empty if it can.
Result<std::string> PatchDelivery::FitToHead(const CommitTree& seen, const CommitTree& head) {
  const auto list = [](const std::vector<std::string>& paths) {
    std::string names;
    for (size_t i = 0; i < std::min(paths.size(), kPathsNamedMax); ++i) {
      names += (i == 0 ? "" : ", ") + paths[i];
    }
    const size_t more = paths.size() - std::min(paths.size(), kPathsNamedMax);
    return names + (more == 0 ? "" : " and " + std::to_string(more) + " more");
  };
  const std::string since =
      "the branch has moved from " + Short(seen_.sha) + " to " + Short(commit_.on.sha);
  MergedFiles fitted = TRY(MergeFiles(std::move(commit_.files), seen, head));
  commit_.files = std::move(fitted.files);
  if (!fitted.conflicts.empty()) {
    return since + ", with conflicts in " + list(fitted.conflicts);
  }
  if (!fitted.merged.empty() && !report_.record.checks.empty()) {
    return since + ", and the checks have not seen what a merge makes of " + list(fitted.merged);
  }
  outcome_.how = since + (fitted.merged.empty() ? ", and none of these files has changed"
                                                : ", and was merged in " + list(fitted.merged));
  return std::string();
}

// Finds the commit that the run says the agent merged, among those that the branch that the pull
// request is for was at, later than the newest that both have. Of another one the report's word
// does not count: within a merged branch, or before a mend, may be what never was to be there.
Status PatchDelivery::FindMerged(Deadline deadline) {
  const std::string& merged = report_.record.changes.merged;
  merged_.reset();
  commit_.merged.clear();
  if (merged.empty() || !proposal_ || way_ != PatchWay::kCommits) return Ok();
  const std::string tip = TRY(branches_.ReadTip(proposal_->base_ref, deadline)).value_or("");
  if (tip.empty()) return Ok();
  std::map<std::string, forge::CommitRecord> known;
  for (forge::CommitRecord& commit : TRY(branches_.ReadHistory(tip, kHistoryMax, deadline))) {
    const std::string sha = commit.sha;
    known[sha] = std::move(commit);
  }
  std::optional<forge::CommitRecord> found;
  for (auto at = known.find(tip); at != known.end();) {
    const forge::CommitRecord& commit = at->second;
    if (history_.contains(commit.sha)) {
      parted_ = commit;
      merged_ = std::move(found);
      return Ok();
    }
    if (commit.sha == merged) found = commit;
    at = commit.parents.empty() ? known.end() : known.find(commit.parents.front());
  }
  return Ok();
}

// Returns whether the commit would keep all that the base branch changed up to what was merged, but
// for files that the patch itself changes: a merge that drops the rest would undo it unseen.
Result<bool> PatchDelivery::KeepsTheBase(const CommitTree& head, Deadline deadline) {
  const CommitTree before = TRY(CommitTree::Read(branches_, parted_.tree, deadline));
  const CommitTree base = TRY(CommitTree::Read(branches_, merged_->tree, deadline));
  std::set<std::string> written;
  for (const forge::FileWrite& file : commit_.files) written.insert(file.path);
  return base.KeepsChanges(before, head, written);
}

// The gates once more, over what the patch itself says, at the commit that it goes to.
Status PatchDelivery::JudgeFiles(change::GateLimits limits, const CommitTree& tree) {
  change::ChangeSet changes = TRY(change::DescribePatch(report_.patch));
  changes.complete = report_.record.changes.complete;
  limits.prefix = report_.record.changes.prefix;
  limits.links = TRY(tree.ProtectedLinks());
  limits.before =
      tree.Names(change::RepositoryCandidates(change::WrittenPaths(changes.files, limits.prefix)));
  change::Verdict verdict = change::JudgeChanges(changes, limits);
  for (const change::GateFinding& finding : verdict.findings) {
    if (finding.severity != change::Severity::kError) continue;
    return Refuse("the gate " + finding.gate + " refuses the patch: " +
                  codec::NeutralLine(
                      finding.path + (finding.path.empty() ? "" : ": ") + finding.message, 300));
  }
  if (!verdict.accepted) return Refuse("the gates refuse the patch");
  return Ok();
}

Status PatchDelivery::CommitOnce(Deadline deadline) {
  outcome_.commit = TRY(branches_.Commit(commit_, deadline));
  outcome_.branch = commit_.branch;
  outcome_.fresh = true;
  outcome_.verification = branches_.verification();
  state_ = State::kDelivered;
  return Ok();
}

Status PatchDelivery::Deliver(const std::string& summary, Deadline deadline) {
  // Each round starts from what is there: another post may have been faster, or an answer lost.
  for (int round = 1; state_ == State::kReady; ++round) {
    Status made = CommitOnce(deadline);
    if (made.ok()) break;
    bool unclear = forge_.may_have_arrived();
    if (branches_.moved() && round < kDeliveryRoundsMax) {
      const std::string tip = commit_.tip;
      Status looked = Look(deadline);
      auto changed = [&] { return state_ != State::kReady || unclear || commit_.tip != tip; };
      const bool lost = made.error().kind == ErrorKind::kPushLost;
      const int looks = lost ? kLooksAfterLossMax : kLooksMax;
      // A forge refuses by what git has, and tells a branch's tip by a table that follows it.
      for (int look = 0; looked.ok() && !changed() && look < looks; ++look) {
        std::this_thread::sleep_for(kBetweenLooks);
        looked = Look(deadline);
      }
      // A branch that moved meanwhile has other files.
      const bool stale = state_ == State::kReady && commit_.on.sha != planned_on_;
      if (looked.ok() && changed() && stale) looked = PlanOrDivert(deadline);
      if (looked.ok() && changed()) continue;
      if (!looked.ok()) made = std::move(looked);
    }
    if (!IsRefusal(made.error())) return made;
    return Refuse(Told(made.error()));
  }
  if (state_ != State::kDelivered || way_ != PatchWay::kPullRequest) return Ok();
  Status kept = KeepPullRequest(summary, deadline);
  if (!kept.ok() && IsRefusal(kept.error())) {
    outcome_.refused = Told(kept.error());
    return Ok();
  }
  return kept;
}

// One pull request for the branch. One that a person closed stays closed until there is a new
// patch.
Status PatchDelivery::KeepPullRequest(const std::string& summary, Deadline deadline) {
  forge::PullRequestText text{
      outcome_.branch, base_, Title(),
      forge::RenderComment(request_.marker_key, summary, request_.run_url).text};
  for (int round = 1;; ++round) {
    std::optional<forge::BranchPullRequest> found =
        TRY(branches_.FindPullRequest(outcome_.branch, base_, deadline));
    if (found && (found->open || !outcome_.fresh)) {
      outcome_.number = found->number;
      outcome_.url = found->url;
      if (!found->open) {
        outcome_.refused =
            "the pull request " + ReferenceTo(forge_.capabilities(), found->number) + " is closed";
        outcome_.told = true;
        outcome_.closed = true;
        return Ok();
      }
      if (found->body == text.body && found->title == text.title) return Ok();
      return branches_.Retell(found->number, text, deadline);
    }
    Result<forge::BranchPullRequest> opened = branches_.Open(text, deadline);
    if (opened.ok()) {
      outcome_.number = opened.value().number;
      outcome_.url = opened.value().url;
      return Ok();
    }
    if (!branches_.moved() || round == kDeliveryRoundsMax) return std::move(opened).error();
  }
}

}  // namespace post
