// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/notes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr size_t kNotesMax = 10'000;

// "https://gitlab.example/api/v4" serves "https://gitlab.example".
std::string ServerOf(std::string api_url) {
  constexpr std::string_view kApi = "/api/v4";
  if (!api_url.ends_with(kApi)) return "";
  api_url.resize(api_url.size() - kApi.size());
  return api_url;
}

}  // namespace

ApiPath GitLabProject::Path() const {
  return ApiPath() / "projects" / (id > 0 ? std::to_string(id) : path);
}

ClientOptions GitLabClient(const GitLabProject& project, int64_t merge_request) {
  ClientOptions options;
  options.where = project.path;
  if (merge_request > 0) options.where += "!" + std::to_string(merge_request);
  options.token_hint = kGitLabPermission;
  options.api_url_hint = "--api-url https://gitlab.com/api/v4";
  return options;
}

Result<Viewer> GitLabViewer(Client& client, Deadline deadline) {
  codec::Json json = TRY(client.Get(ApiPath() / "user", kGitLabPermission, deadline));
  Viewer viewer{json.IntegerAt("id"), json.StringAt("username")};
  if (viewer.id <= 0) {
    return Error{Code::kTemporary, "the forge's response does not name a user"};
  }
  return viewer;
}

GitLabNotes::GitLabNotes(Client& client, const GitLabProject& project, int64_t merge_request)
    : client_(client), notes_(project.Path() / "merge_requests" / merge_request / "notes") {
  const std::string server = ServerOf(client.api_url());
  if (!server.empty()) {
    page_ = server + "/" + project.path + "/-/merge_requests/" + std::to_string(merge_request);
  }
}

Result<Comment> GitLabNotes::Read(const codec::Json& json) const {
  Comment comment;
  comment.id = json.IntegerAt("id");
  if (comment.id <= 0) return Error{Code::kTemporary, "the forge's response is not a note"};
  if (const codec::Json* author = json.Find("author")) {
    comment.author_id = author->IntegerAt("id");
    comment.author_login = author->StringAt("username");
  }
  if (!page_.empty()) comment.url = ShownUrl(page_ + "#note_" + std::to_string(comment.id));
  comment.text = json.StringAt("body");
  return comment;
}

Result<std::vector<Comment>> GitLabNotes::List(Deadline deadline) {
  std::vector<Comment> comments;
  for (const codec::Json& item :
       TRY(client_.GetAll(notes_.Query("sort", "asc").Query("order_by", "created_at"),
                          kGitLabPermission, kNotesMax, deadline))) {
    if (!item.BooleanAt("system")) comments.push_back(TRY(Read(item)));
  }
  std::sort(comments.begin(), comments.end(),
            [](const Comment& a, const Comment& b) { return a.id < b.id; });
  return comments;
}

Result<Comment> GitLabNotes::Write(WriteRequest request, const std::string& text,
                                   Deadline deadline) {
  request.permission = kGitLabPermission;
  request.body.Set("body", text);
  std::optional<codec::Json> json = TRY(client_.Write(request, deadline));
  return json ? Read(*json) : Comment();
}

Result<Comment> GitLabNotes::Create(const std::string& text, Deadline deadline) {
  return Write({"POST", notes_}, text, deadline);
}

Result<Comment> GitLabNotes::Update(int64_t id, const std::string& text, Deadline deadline) {
  return Write({"PUT", notes_ / id, {}, true}, text, deadline);
}

Status GitLabNotes::Delete(int64_t id, Deadline deadline) {
  Result<std::optional<codec::Json>> gone =
      client_.Write({"DELETE", notes_ / id, {}, true, kGitLabPermission}, deadline);
  if (gone.ok() || client_.status() == 404) return Ok();
  return std::move(gone).error();
}

}  // namespace forge
