// SPDX-License-Identifier: Apache-2.0
#include "forge/gitea/reviews.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "forge/rest/comments.h"
#include "forge/rest/proposal.h"

namespace forge {
namespace {

constexpr size_t kReviewsMax = 2000;
constexpr size_t kReviewCommentsMax = 1000;  // The comments of one review.
constexpr char kMarkerStart[] = "<!-- agentic-ci:";

// The path and line of a comment. Gitea shows all comments on one as one conversation, whichever
// review each is of.
using Spot = std::pair<std::string, int>;

}  // namespace

ReviewThread GiteaReviews::ReadThread(const codec::Json& comment, const Viewer& viewer) const {
  ReviewThread thread;
  thread.first_id = comment.IntegerAt("id");
  thread.id = std::to_string(thread.first_id);
  thread.first_text = comment.StringAt("body");
  thread.ours = UserIdAt(comment, "user") == viewer.id;
  int64_t resolver = UserIdAt(comment, "resolver");
  thread.resolved = resolver != 0;
  thread.resolved_by_us = resolver == viewer.id;
  thread.line = static_cast<int>(comment.IntegerAt("position"));
  thread.stale = comment.StringAt("commit_id") != head_sha_;
  thread.comments = 1;
  return thread;
}

GiteaReviews::GiteaReviews(Client& client, const std::string& repository, int64_t number)
    : client_(client),
      repository_(ApiPath::Repository(repository)),
      pull_(repository_ / "pulls" / number),
      diff_(repository_ / "pulls" / (std::to_string(number) + ".diff")) {}

Result<Proposal> GiteaReviews::ReadProposal(Deadline deadline) {
  const codec::Json json = TRY(client_.Get(pull_, kPullsPermission, deadline));
  Proposal proposal = TRY(ParseProposal(json));
  head_sha_ = proposal.head_sha;
  return proposal;
}

Result<std::vector<DiffFile>> GiteaReviews::ReadFiles(Deadline deadline) {
  return ParseDiff(TRY(client_.GetText(diff_, kPullsPermission, deadline)));
}

Result<std::vector<codec::Json>> GiteaReviews::ReadComments(int64_t review_id, Deadline deadline) {
  Result<std::vector<codec::Json>> comments = client_.GetAll(
      pull_ / "reviews" / review_id / "comments", kPullsPermission, kReviewCommentsMax, deadline);
  // Another post has taken the review back meanwhile.
  const bool gone = !comments.ok() && comments.error().code == Code::kNotFound;
  return gone ? std::vector<codec::Json>() : std::move(comments);
}

Result<std::vector<ReviewThread>> GiteaReviews::ReadThreads(Deadline deadline) {
  Viewer viewer = TRY(WhoAmI(client_, deadline));
  std::vector<ReviewThread> threads;
  std::vector<Spot> spots;                       // Of each thread.
  std::map<Spot, std::vector<int64_t>> answers;  // The ids of what people wrote there.
  empty_reviews_.clear();
  if (viewer.id == 0) return threads;
  for (const codec::Json& review :
       TRY(client_.GetAll(pull_ / "reviews", kPullsPermission, kReviewsMax, deadline))) {
    if (review.IntegerAt("comments_count") == 0) {
      const std::string text = review.StringAt("body");
      const bool submitted = review.StringAt("state") != "PENDING";
      const bool ours = UserIdAt(review, "user") == viewer.id;
      if (ours && submitted && !text.empty()) {
        empty_reviews_.push_back({review.IntegerAt("id"), text});
      }
      continue;
    }
    for (const codec::Json& comment : TRY(ReadComments(review.IntegerAt("id"), deadline))) {
      ReviewThread thread = ReadThread(comment, viewer);
      Spot spot{comment.StringAt("path"), thread.line};
      if (!thread.ours || !thread.first_text.starts_with(kMarkerStart)) {
        answers[spot].push_back(thread.first_id);
      } else {
        spots.push_back(std::move(spot));
        threads.push_back(std::move(thread));
      }
    }
  }
  for (size_t at = 0; at < threads.size(); ++at) {
    const std::vector<int64_t>& there = answers[spots[at]];
    threads[at].comments += static_cast<int>(std::count_if(
        there.begin(), there.end(), [&](int64_t id) { return id > threads[at].first_id; }));
  }
  return threads;
}

Status GiteaReviews::Post(const std::string& head_sha, const std::string& text,
                          const std::vector<ReviewComment>& comments, Deadline deadline) {
  WriteRequest request{"POST", pull_ / "reviews", {}, false, kPullsPermission};
  codec::Json list = codec::Json::EmptyArray();
  for (const ReviewComment& comment : comments) {
    codec::Json json;
    json.Set("path", comment.path).Set("new_position", comment.end_line).Set("body", comment.text);
    list.Push(std::move(json));
  }
  request.body.Set("commit_id", head_sha).Set("event", "COMMENT").Set("body", text);
  request.body.Set("comments", std::move(list));
  TRY(client_.Write(request, deadline));
  return Ok();
}

Status GiteaReviews::PostOnFile(const std::string&, const std::string&, const std::string&,
                                Deadline) {
  return Error{Code::kInvalid, "this forge has no comments on files"};
}

Status GiteaReviews::Resolve(const std::string& thread_id, Deadline deadline) {
  return Settle(thread_id, "resolve", deadline);
}

Status GiteaReviews::Reopen(const std::string& thread_id, Deadline deadline) {
  return Settle(thread_id, "unresolve", deadline);
}

Status GiteaReviews::Settle(const std::string& thread_id, const char* how, Deadline deadline) {
  ApiPath path = repository_ / "pulls" / "comments" / thread_id / how;
  TRY(client_.Write({"POST", path, {}, true, kPullsPermission}, deadline));
  return Ok();
}

Status GiteaReviews::DeleteComment(int64_t id, Deadline deadline) {
  Result<std::optional<codec::Json>> gone = client_.Write(
      {"DELETE", repository_ / "issues" / "comments" / id, {}, true, kPullsPermission}, deadline);
  if (gone.ok() || client_.status() == 404) return Ok();
  return std::move(gone).error();
}

Status GiteaReviews::Retire(int64_t review_id, Deadline deadline) {
  Result<std::optional<codec::Json>> gone = client_.Write(
      {"DELETE", pull_ / "reviews" / review_id, {}, true, kPullsPermission}, deadline);
  if (gone.ok() || client_.status() == 404) return Ok();
  return std::move(gone).error();
}

}  // namespace forge
