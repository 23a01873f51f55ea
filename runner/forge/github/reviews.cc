// SPDX-License-Identifier: Apache-2.0
#include "forge/github/reviews.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "forge/rest/comments.h"
#include "forge/rest/proposal.h"

namespace forge {
namespace {

constexpr size_t kFilesMax = 3000;  // GitHub lists no more of them.
constexpr int kThreadPagesMax = 50;
constexpr char kThreadsQuery[] =
    "query($owner: String!, $name: String!, $number: Int!, $after: String) { viewer { login } "
    "repository(owner: $owner, name: $name) { pullRequest(number: $number) { "
    "reviews(last: 100) { nodes { databaseId body viewerDidAuthor comments { totalCount } } } "
    "reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { id "
    "isResolved isOutdated line resolvedBy { login } comments(first: 1) { totalCount nodes { id "
    "databaseId body viewerDidAuthor isMinimized } } } } } } }";
constexpr char kResolveMutation[] =
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }";
constexpr char kReopenMutation[] =
    "mutation($id: ID!) { unresolveReviewThread(input: {threadId: $id}) { thread { isResolved } } "
    "}";
constexpr char kHideMutation[] =
    "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { "
    "minimizedComment { isMinimized } } }";

const codec::Json* Member(const codec::Json* object, const char* name) {
  return object == nullptr ? nullptr : object->Find(name);
}

std::string TextOf(const codec::Json* object, const char* name) {
  return object == nullptr ? "" : object->StringAt(name);
}

// GraphQL answers 200 with "errors" for what REST says by a status.
Result<codec::Json> DataOf(codec::Json response) {
  const codec::Json* errors = response.Find("errors");
  if (errors != nullptr && errors->array() != nullptr && !errors->array()->empty()) {
    const codec::Json& first = errors->array()->front();
    const std::string type = first.StringAt("type");
    const bool refused = type == "FORBIDDEN" || type == "INSUFFICIENT_SCOPES";
    const Code code = refused               ? Code::kRefused
                      : type == "NOT_FOUND" ? Code::kNotFound
                                            : Code::kInvalid;
    return Error{code, "the forge responded: " + first.StringAt("message")};
  }
  const codec::Json* data = response.Find("data");
  if (data == nullptr) return Error{Code::kTemporary, "the forge's response has no data"};
  return *data;
}

ReviewThread ReadThread(const codec::Json& node, const std::string& viewer) {
  ReviewThread thread;
  thread.id = node.StringAt("id");
  thread.resolved = node.BooleanAt("isResolved");
  thread.outdated = node.BooleanAt("isOutdated");
  thread.line = static_cast<int>(node.IntegerAt("line"));  // It is null for one on a file.
  thread.resolved_by_us = thread.resolved && TextOf(node.Find("resolvedBy"), "login") == viewer;
  const codec::Json* comments = node.Find("comments");
  if (comments == nullptr) return thread;
  thread.comments = static_cast<int>(comments->IntegerAt("totalCount"));
  const codec::Json* nodes = comments->Find("nodes");
  if (nodes == nullptr || nodes->array() == nullptr || nodes->array()->empty()) return thread;
  const codec::Json& first = nodes->array()->front();
  thread.first_id = first.IntegerAt("databaseId");
  thread.first_node = first.StringAt("id");
  thread.hidden = first.BooleanAt("isMinimized");
  thread.first_text = first.StringAt("body");
  thread.ours = first.BooleanAt("viewerDidAuthor");
  return thread;
}

}  // namespace

GitHubReviews::GitHubReviews(Client& client, const std::string& repository, int64_t number)
    : client_(client),
      owner_(repository.substr(0, repository.find('/'))),
      name_(repository.substr(repository.find('/') + 1)),
      repository_(ApiPath::Repository(repository)),
      number_(number),
      pull_(repository_ / "pulls" / number) {}

Result<Proposal> GitHubReviews::ReadProposal(Deadline deadline) {
  const codec::Json json = TRY(client_.Get(pull_, kPullsPermission, deadline));
  Proposal proposal = TRY(ParseProposal(json));
  proposal.files = static_cast<size_t>(std::max<int64_t>(0, json.IntegerAt("changed_files")));
  return proposal;
}

Result<std::vector<DiffFile>> GitHubReviews::ReadFiles(Deadline deadline) {
  std::vector<DiffFile> files;
  for (const codec::Json& json :
       TRY(client_.GetAll(pull_ / "files", kPullsPermission, kFilesMax, deadline))) {
    DiffFile file;
    file.path = json.StringAt("filename");
    file.old_path = json.StringAt("previous_filename");
    if (file.old_path.empty()) file.old_path = file.path;
    file.removed = json.StringAt("status") == "removed";
    file.blob = json.StringAt("sha");
    file.lines = ParseHunks(json.StringAt("patch"));  // Absent for binary and very large files.
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<ReviewThread>> GitHubReviews::ReadThreads(Deadline deadline) {
  std::vector<ReviewThread> threads;
  codec::Json after;
  for (int page = 0; page < kThreadPagesMax; ++page) {
    WriteRequest query{"POST", ApiPath::GraphQl(), {}, true, kPullsPermission};
    codec::Json variables;
    variables.Set("owner", owner_).Set("name", name_).Set("number", number_).Set("after", after);
    query.body.Set("query", kThreadsQuery).Set("variables", std::move(variables));
    codec::Json response = TRY(client_.Ask(query, deadline));
    codec::Json data = TRY(DataOf(std::move(response)));
    std::string viewer = TextOf(data.Find("viewer"), "login");
    const codec::Json* pull = Member(data.Find("repository"), "pullRequest");
    const codec::Json* list = Member(pull, "reviewThreads");
    const codec::Json* nodes = Member(list, "nodes");
    if (nodes == nullptr || nodes->array() == nullptr) {
      return Error{Code::kTemporary, "the forge's response has no review threads"};
    }
    for (const codec::Json& node : *nodes->array()) threads.push_back(ReadThread(node, viewer));
    ReadEmptyReviews(Member(Member(pull, "reviews"), "nodes"));
    const codec::Json* page_info = list->Find("pageInfo");
    if (page_info == nullptr || !page_info->BooleanAt("hasNextPage")) return threads;
    after = codec::Json(page_info->StringAt("endCursor"));
  }
  return threads;
}

void GitHubReviews::ReadEmptyReviews(const codec::Json* nodes) {
  empty_reviews_.clear();
  if (nodes == nullptr || nodes->array() == nullptr) return;
  for (const codec::Json& node : *nodes->array()) {
    const codec::Json* comments = node.Find("comments");
    const bool empty = comments != nullptr && comments->IntegerAt("totalCount", 1) == 0;
    const std::string text = node.StringAt("body");
    if (!empty || text.empty() || !node.BooleanAt("viewerDidAuthor")) continue;
    empty_reviews_.push_back({node.IntegerAt("databaseId"), text});
  }
}

Status GitHubReviews::Post(const std::string& head_sha, const std::string& text,
                           const std::vector<ReviewComment>& comments, Deadline deadline) {
  WriteRequest request{"POST", pull_ / "reviews", {}, false, kPullsPermission};
  codec::Json list = codec::Json::EmptyArray();
  for (const ReviewComment& comment : comments) {
    codec::Json json;
    json.Set("path", comment.path).Set("line", comment.end_line).Set("side", "RIGHT");
    if (comment.end_line > comment.line) {
      json.Set("start_line", comment.line).Set("start_side", "RIGHT");
    }
    json.Set("body", comment.text);
    list.Push(std::move(json));
  }
  request.body.Set("commit_id", head_sha).Set("event", "COMMENT").Set("body", text);
  request.body.Set("comments", std::move(list));
  TRY(client_.Write(request, deadline));
  return Ok();
}

Status GitHubReviews::PostOnFile(const std::string& head_sha, const std::string& path,
                                 const std::string& text, Deadline deadline) {
  WriteRequest request{"POST", pull_ / "comments", {}, false, kPullsPermission};
  request.body.Set("body", text)
      .Set("commit_id", head_sha)
      .Set("path", path)
      .Set("subject_type", "file");
  TRY(client_.Write(request, deadline));
  return Ok();
}

Status GitHubReviews::Resolve(const std::string& thread_id, Deadline deadline) {
  return Mutate(kResolveMutation, thread_id, deadline);
}

Status GitHubReviews::Reopen(const std::string& thread_id, Deadline deadline) {
  return Mutate(kReopenMutation, thread_id, deadline);
}

Status GitHubReviews::Hide(const ReviewThread& thread, Deadline deadline) {
  return Mutate(kHideMutation, thread.first_node, deadline);
}

Status GitHubReviews::Mutate(const char* mutation, const std::string& id, Deadline deadline) {
  WriteRequest request{"POST", ApiPath::GraphQl(), {}, true, kPullsPermission};
  request.body.Set("query", mutation).Set("variables", codec::Json().Set("id", id));
  std::optional<codec::Json> json = TRY(client_.Write(request, deadline));
  if (json) TRY(DataOf(std::move(*json)));
  return Ok();
}

Status GitHubReviews::DeleteComment(int64_t id, Deadline deadline) {
  Result<std::optional<codec::Json>> gone = client_.Write(
      {"DELETE", repository_ / "pulls" / "comments" / id, {}, true, kPullsPermission}, deadline);
  if (gone.ok() || client_.status() == 404) return Ok();
  return std::move(gone).error();
}

// A review that was submitted cannot be deleted.
Status GitHubReviews::Retire(int64_t review_id, Deadline deadline) {
  WriteRequest request{"PUT", pull_ / "reviews" / review_id, {}, true, kPullsPermission};
  request.body.Set("body", "The comments of this review were taken back.");
  TRY(client_.Write(request, deadline));
  return Ok();
}

}  // namespace forge
