// SPDX-License-Identifier: Apache-2.0
#include "forge/sticky_comment.h"

#include <optional>
#include <utility>
#include <vector>

#include "forge/comment.h"
#include "net/retry.h"

namespace forge {
namespace {

// The number of new looks at the comments after another post changed them meanwhile.
constexpr int kRoundsMax = 4;
constexpr size_t kMarkerKeyBytesMax = 512;

Status Check(const Forge& forge, const std::string& marker_key) {
  if (forge.place().number <= 0) {
    return Error{Code::kInvalid, "no pull request to post to", "--number NUMBER"};
  }
  if (marker_key.size() > kMarkerKeyBytesMax) {
    return Error{Code::kInvalid,
                 "a marker key of more than " + std::to_string(kMarkerKeyBytesMax) + " bytes"};
  }
  return Ok();
}

class Keeper {
 public:
  Keeper(Forge& forge, const std::string& marker_key, const StickyComment& comment,
         Deadline deadline)
      : forge_(forge),
        comments_(forge.comments()),
        marker_key_(marker_key),
        marker_(RenderMarker(marker_key)),
        comment_(comment),
        deadline_(deadline) {}

  // Every round starts from what is there, so it does not matter where an earlier one stopped.
  Result<CommentOutcome> Post() {
    for (int round = 1;; ++round) {
      Result<CommentOutcome> outcome = PostOnce();
      if (outcome.ok()) {
        outcome.value().others = others_;
        outcome.value().other_author = other_author_;
        outcome.value().cut = cut_;
      }
      if (outcome.ok() || round == kRoundsMax) return outcome;
      Code code = outcome.error().code;
      bool changed_under_us = code == Code::kNotFound && target_gone_;
      bool may_have_arrived = code == Code::kTemporary && creation_unclear_;
      if (!changed_under_us && !may_have_arrived) return outcome;
      // A forge that restarts takes seconds; another post's change is there already.
      if (may_have_arrived && !net::PauseBefore(round + 1, deadline_)) return outcome;
    }
  }

 private:
  // Asks for the token's user only where a comment has the marker and this post has created none.
  Result<std::vector<Comment>> FindOurs() {
    std::vector<Comment> ours;
    others_ = 0;
    std::vector<Comment> all = TRY(comments_.List(deadline_));
    for (Comment& comment : all) {
      if (!CarriesMarker(comment.text, marker_)) continue;
      if (!viewer_) {
        viewer_ = TRY(forge_.AskViewer(deadline_).Context("asking whose token this is"));
      }
      if (viewer_->Wrote(comment.author_id, comment.author_login)) {
        ours.push_back(std::move(comment));
      } else {
        ++others_;
        other_author_ = comment.author_login;
      }
    }
    return ours;
  }

  // The author of what this token created.
  void Meet(const Comment& created) {
    if (created.author_id == 0 && created.author_login.empty()) return;
    viewer_ = Viewer{created.author_id, created.author_login};
  }

  std::string Render(const std::string& body) {
    CommentText text = RenderComment(marker_key_, body, comment_.full_text_at, comment_.stamp);
    cut_ = text.cut;
    return std::move(text.text);
  }

  Result<CommentOutcome> Update(const Comment& target) {
    std::optional<CommentStamp> there = ReadStamp(target.text);
    if (there && comment_.stays && comment_.stays(*there)) {
      CommentOutcome outcome{target.url, target.id};
      outcome.stayed = true;
      return outcome;
    }
    const bool follows = there && comment_.follow;
    const std::string text = Render(follows ? comment_.follow(*there, target.text) : comment_.body);
    Result<Comment> updated = comments_.Update(target.id, text, deadline_);
    target_gone_ = !updated.ok() && updated.error().code == Code::kNotFound;
    if (!updated.ok()) return std::move(updated).error();
    return CommentOutcome{updated.value().url, updated.value().id};
  }

  Result<CommentOutcome> PostOnce() {
    target_gone_ = false;
    creation_unclear_ = false;
    std::vector<Comment> ours = TRY(FindOurs());
    if (ours.empty()) return Create();
    CommentOutcome outcome = TRY(Update(ours.front()));
    // Left over from a post that was killed between its creation and its second look.
    for (size_t i = 1; i < ours.size(); ++i) TRY(comments_.Delete(ours[i].id, deadline_));
    return outcome;
  }

  // Another post may create at the same moment. Both look again and keep the oldest; the one that
  // created a newer one moves its text there and deletes its own.
  Result<CommentOutcome> Create() {
    Result<Comment> created = comments_.Create(Render(comment_.body), deadline_);
    creation_unclear_ = !created.ok() && created.error().code == Code::kTemporary;
    if (!created.ok()) return std::move(created).error();
    Meet(created.value());
    CommentOutcome outcome{created.value().url, created.value().id, true};
    std::vector<Comment> ours = TRY(FindOurs());
    if (ours.empty() || ours.front().id >= created.value().id) return outcome;
    outcome = TRY(Update(ours.front()));
    TRY(comments_.Delete(created.value().id, deadline_));
    return outcome;
  }

  Forge& forge_;
  Comments& comments_;
  std::optional<Viewer> viewer_;
  const std::string& marker_key_;
  std::string marker_;
  const StickyComment& comment_;
  Deadline deadline_;
  int others_ = 0;  // CommentOutcome::others
  std::string other_author_;
  bool cut_ = false;               // CommentOutcome::cut
  bool target_gone_ = false;       // The comment to update was deleted since the listing.
  bool creation_unclear_ = false;  // No answer to a creation: it may have happened.
};

}  // namespace

Result<CommentOutcome> KeepComment(Forge& forge, const std::string& marker_key,
                                   const StickyComment& comment, Deadline deadline) {
  TRY(Check(forge, marker_key));
  return Keeper(forge, marker_key, comment, deadline).Post();
}

}  // namespace forge
