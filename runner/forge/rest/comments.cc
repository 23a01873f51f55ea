// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/comments.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace forge {
namespace {

// GitHub closes a conversation at 2500 comments.
constexpr size_t kCommentsMax = 10'000;
constexpr char kActionsLogin[] = "github-actions[bot]";

Result<Comment> ReadComment(const codec::Json& json) {
  Comment comment;
  comment.id = json.IntegerAt("id");
  if (comment.id <= 0) return Error{Code::kTemporary, "the forge's response is not a comment"};
  if (const codec::Json* user = json.Find("user")) {
    comment.author_id = user->IntegerAt("id");
    comment.author_login = user->StringAt("login");
  }
  comment.url = ShownUrl(json.StringAt("html_url"));
  comment.text = json.StringAt("body");
  return comment;
}

Result<Viewer> AskGraphQl(Client& client, Deadline deadline) {
  WriteRequest query{"POST", ApiPath::GraphQl(), {}, true, ""};
  query.body.Set("query", "query { viewer { login } }");
  Result<codec::Json> json = client.Ask(query, deadline);
  if (!json.ok() && json.error().code == Code::kTemporary) return std::move(json).error();
  std::string login;
  if (json.ok()) {
    const codec::Json* data = json.value().Find("data");
    const codec::Json* viewer = data == nullptr ? nullptr : data->Find("viewer");
    if (viewer != nullptr) login = viewer->StringAt("login");
  }
  if (login.empty()) return Viewer{0, kActionsLogin};
  // The token is an application's: its login ends so, and no person's does.
  if (login.find("[bot]") == std::string::npos) login += "[bot]";
  return Viewer{0, login};
}

}  // namespace

ClientOptions RestClient(const std::string& repository, int64_t proposal_number, bool gitea) {
  ClientOptions options;
  options.api_url = "https://api.github.com";
  options.where = repository + "#" + std::to_string(proposal_number);
  options.token_hint = "GITHUB_TOKEN: ${{ github.token }}";
  options.pages_by_link = !gitea;
  options.headers = {{"accept", "application/vnd.github+json"},
                     {"x-github-api-version", "2022-11-28"}};
  return options;
}

Result<Viewer> WhoAmI(Client& client, Deadline deadline) {
  if (client.of_installation()) return AskGraphQl(client, deadline);
  Result<codec::Json> json = client.Get(ApiPath() / "user", kPullsPermission, deadline);
  if (json.ok()) {
    Viewer viewer{json.value().IntegerAt("id"), json.value().StringAt("login")};
    if (viewer.id == 0 && viewer.login.empty()) {
      return Error{Code::kTemporary, "the forge's response does not name a user"};
    }
    return viewer;
  }
  bool unknown_here = client.status() == 403 || client.status() == 404;
  if (unknown_here && json.error().code != Code::kTemporary) return AskGraphQl(client, deadline);
  return std::move(json).error();
}

GitHubComments::GitHubComments(Client& client, const std::string& repository,
                               int64_t proposal_number)
    : client_(client),
      repository_(ApiPath::Repository(repository)),
      conversation_(repository_ / "issues" / proposal_number / "comments") {}

Result<std::vector<Comment>> GitHubComments::List(Deadline deadline) {
  std::vector<Comment> comments;
  for (const codec::Json& item :
       TRY(client_.GetAll(conversation_, kPullsPermission, kCommentsMax, deadline))) {
    comments.push_back(TRY(ReadComment(item)));
  }
  std::sort(comments.begin(), comments.end(),
            [](const Comment& a, const Comment& b) { return a.id < b.id; });
  return comments;
}

Result<Comment> GitHubComments::Write(WriteRequest request, const std::string& text,
                                      Deadline deadline) {
  request.permission = kPullsPermission;
  request.body.Set("body", text);
  std::optional<codec::Json> json = TRY(client_.Write(request, deadline));
  return json ? ReadComment(*json) : Comment();
}

Result<Comment> GitHubComments::Create(const std::string& text, Deadline deadline) {
  return Write({"POST", conversation_}, text, deadline);
}

Result<Comment> GitHubComments::Update(int64_t id, const std::string& text, Deadline deadline) {
  return Write({"PATCH", repository_ / "issues" / "comments" / id, {}, true}, text, deadline);
}

Status GitHubComments::Delete(int64_t id, Deadline deadline) {
  Result<std::optional<codec::Json>> gone = client_.Write(
      {"DELETE", repository_ / "issues" / "comments" / id, {}, true, kPullsPermission}, deadline);
  if (gone.ok() || client_.status() == 404 || client_.status() == 410) return Ok();
  return std::move(gone).error();
}

}  // namespace forge
