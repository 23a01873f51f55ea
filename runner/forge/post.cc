// SPDX-License-Identifier: Apache-2.0
#include "forge/post.h"

#include <utility>
#include <vector>

#include "codec/text/neutral.h"
#include "forge/comment.h"
#include "forge/event.h"
#include "forge/github_comments.h"
#include "net/http_client.h"

namespace forge {
namespace {

// How often the comments are looked at anew after another post changed them under us.
constexpr int kRoundsMax = 4;
constexpr size_t kMarkerKeyBytesMax = 512;

// A token in clear is everybody's on the way; on the machine itself there is no way.
bool KeepsTokenPrivate(const std::string& url) {
  if (url.rfind("https://", 0) == 0) return true;
  constexpr std::string_view kHttp = "http://";
  if (url.rfind(kHttp, 0) != 0) return false;
  std::string authority = url.substr(kHttp.size(), url.find('/', kHttp.size()) - kHttp.size());
  if (authority.empty()) return false;
  std::string host = authority.front() == '[' ? authority.substr(0, authority.find(']') + 1)
                                              : authority.substr(0, authority.find(':'));
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

Status Check(const PostOptions& options) {
  if (options.token.empty()) {
    return Error{Code::kSetup, "no token to post with", "GITHUB_TOKEN: ${{ github.token }}"};
  }
  if (!ValidRepository(options.repository)) {
    return Error{Code::kInvalid,
                 "invalid repository: '" + codec::NeutralLine(options.repository, 200) + "'",
                 "--repository OWNER/NAME"};
  }
  if (options.proposal_number <= 0) {
    return Error{Code::kInvalid, "no pull request to post to", "--number NUMBER"};
  }
  if (options.marker_key.size() > kMarkerKeyBytesMax) {
    return Error{Code::kInvalid,
                 "a marker key of more than " + std::to_string(kMarkerKeyBytesMax) + " bytes"};
  }
  if (options.api_url.empty() || !KeepsTokenPrivate(options.api_url)) {
    return Error{Code::kSetup,
                 "the token is sent only over https, not to '" +
                     codec::NeutralLine(options.api_url, 200) + "'",
                 "--api-url https://api.github.com"};
  }
  return Ok();
}

class StickyComment {
 public:
  StickyComment(GitHubComments& comments, Viewer viewer, std::string marker, std::string text,
                Deadline deadline)
      : comments_(comments),
        viewer_(std::move(viewer)),
        marker_(std::move(marker)),
        text_(std::move(text)),
        deadline_(deadline) {}

  // Every round starts from what is there, so it does not matter where an earlier one stopped.
  Result<PostOutcome> Post() {
    for (int round = 1;; ++round) {
      Result<PostOutcome> outcome = PostOnce();
      if (outcome.ok() || round == kRoundsMax) return outcome;
      Code code = outcome.error().code;
      bool changed_under_us = code == Code::kNotFound && target_gone_;
      bool may_have_arrived = code == Code::kTemporary && creation_unclear_;
      if (!changed_under_us && !may_have_arrived) return outcome;
    }
  }

 private:
  Result<std::vector<Comment>> FindOurs() {
    std::vector<Comment> ours;
    std::vector<Comment> all = TRY(comments_.List(deadline_));
    for (Comment& comment : all) {
      if (viewer_.Wrote(comment) && CarriesMarker(comment.text, marker_)) {
        ours.push_back(std::move(comment));
      }
    }
    return ours;
  }

  Result<PostOutcome> Update(const Comment& target) {
    Result<Comment> updated = comments_.Update(target.id, text_, deadline_);
    target_gone_ = !updated.ok() && updated.error().code == Code::kNotFound;
    if (!updated.ok()) return std::move(updated).error();
    return PostOutcome{updated.value().url, updated.value().id, false, false};
  }

  Result<PostOutcome> PostOnce() {
    target_gone_ = false;
    creation_unclear_ = false;
    std::vector<Comment> ours = TRY(FindOurs());
    if (ours.empty()) return Create();
    PostOutcome outcome = TRY(Update(ours.front()));
    // Left over from a post that was killed between its creation and its second look.
    for (size_t i = 1; i < ours.size(); ++i) TRY(comments_.Delete(ours[i].id, deadline_));
    return outcome;
  }

  // Another post may create at the same moment. Both look again and keep the oldest; whoever made a
  // younger one moves its text there and takes its own back.
  Result<PostOutcome> Create() {
    Result<Comment> created = comments_.Create(text_, deadline_);
    creation_unclear_ = !created.ok() && created.error().code == Code::kTemporary;
    if (!created.ok()) return std::move(created).error();
    PostOutcome outcome{created.value().url, created.value().id, true, false};
    std::vector<Comment> ours = TRY(FindOurs());
    if (ours.empty() || ours.front().id >= created.value().id) return outcome;
    outcome = TRY(Update(ours.front()));
    TRY(comments_.Delete(created.value().id, deadline_));
    return outcome;
  }

  GitHubComments& comments_;
  Viewer viewer_;
  std::string marker_;
  std::string text_;
  Deadline deadline_;
  bool target_gone_ = false;       // The comment to update was deleted since the listing.
  bool creation_unclear_ = false;  // No answer to a creation: it may have happened.
};

}  // namespace

Result<PostOutcome> PostSticky(const PostOptions& options, Deadline deadline) {
  TRY(Check(options));
  net::HttpClientOptions client_options;
  client_options.ca_file = options.ca_file;
  client_options.proxy = options.proxy;
  client_options.response_bytes_max = 96 * 1024 * 1024;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(client_options)));
  std::string api_url = options.api_url;
  while (api_url.back() == '/') api_url.pop_back();

  GitHubComments comments(std::move(client), api_url, options.repository, options.proposal_number,
                          options.token);
  Viewer viewer = TRY(comments.WhoAmI(deadline).Context("asking whose token this is"));
  CommentText comment = RenderComment(options.marker_key, options.body, options.full_text_at);
  StickyComment sticky(comments, std::move(viewer), RenderMarker(options.marker_key),
                       std::move(comment.text), deadline);
  PostOutcome outcome = TRY(sticky.Post());
  outcome.cut = comment.cut;
  return outcome;
}

}  // namespace forge
