// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/discussions.h"

#include <algorithm>
#include <utility>

#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr size_t kDiffsMax = 3000;
constexpr size_t kDiscussionsMax = 10'000;

const codec::Json* First(const codec::Json* list) {
  return list == nullptr || list->array() == nullptr || list->array()->empty()
             ? nullptr
             : &list->array()->front();
}

}  // namespace

GitLabDiscussions::GitLabDiscussions(Client& client, const GitLabProject& project,
                                     int64_t merge_request)
    : client_(client),
      request_(project.Path() / "merge_requests" / merge_request),
      notes_(client, project, merge_request) {}

GitLabDiscussions::Refs GitLabDiscussions::ReadRefs(const codec::Json* json) {
  if (json == nullptr) return {};
  return {json->StringAt("base_sha"), json->StringAt("start_sha"), json->StringAt("head_sha")};
}

Result<Proposal> GitLabDiscussions::ReadProposal(Deadline deadline) {
  codec::Json json = TRY(client_.Get(request_, kGitLabPermission, deadline));
  refs_ = ReadRefs(json.Find("diff_refs"));
  Proposal proposal;
  proposal.head_sha = json.StringAt("sha");
  if (proposal.head_sha.empty()) {
    return Error{Code::kTemporary, "the forge's response is not a merge request"};
  }
  // It makes the difference behind a push, not with it. Of a merge request without changes there is
  // none.
  if (!refs_.head.empty() && refs_.head != proposal.head_sha) {
    return Error{Code::kTemporary, "the forge has not made the merge request's difference yet"};
  }
  proposal.base_sha = refs_.base;
  proposal.head_ref = json.StringAt("source_branch");
  proposal.base_ref = json.StringAt("target_branch");
  proposal.from_fork =
      json.IntegerAt("source_project_id", -1) != json.IntegerAt("target_project_id", -2);
  proposal.open = json.StringAt("state") == "opened";
  return proposal;
}

Result<std::vector<DiffFile>> GitLabDiscussions::ReadFiles(Deadline deadline) {
  files_.clear();
  if (refs_.head.empty()) return files_;
  for (const codec::Json& json :
       TRY(client_.GetAll(request_ / "diffs", kGitLabPermission, kDiffsMax, deadline))) {
    DiffFile file;
    file.path = json.StringAt("new_path");
    file.old_path = json.StringAt("old_path");
    file.removed = json.BooleanAt("deleted_file");
    // The difference is empty for binary and very large files.
    file.lines = ParseHunks(json.StringAt("diff"));
    files_.push_back(std::move(file));
  }
  return files_;
}

Result<std::vector<ReviewThread>> GitLabDiscussions::ReadThreads(Deadline deadline) {
  if (!viewer_) viewer_ = TRY(GitLabViewer(client_, deadline));
  std::vector<ReviewThread> threads;
  for (const codec::Json& json : TRY(client_.GetAll(request_ / "discussions", kGitLabPermission,
                                                    kDiscussionsMax, deadline))) {
    const codec::Json* notes = json.Find("notes");
    const codec::Json* first = First(notes);
    // Only threads can be resolved, which the one comment is not.
    if (first == nullptr || !first->BooleanAt("resolvable")) continue;
    ReviewThread thread;
    thread.id = json.StringAt("id");
    thread.first_id = first->IntegerAt("id");
    thread.first_text = first->StringAt("body");
    thread.ours = UserIdAt(*first, "author") == viewer_->id;
    thread.resolved = first->BooleanAt("resolved");
    thread.resolved_by_us = thread.resolved && UserIdAt(*first, "resolved_by") == viewer_->id;
    const codec::Json* position = first->Find("position");
    if (position != nullptr) thread.line = static_cast<int>(position->IntegerAt("new_line"));
    const Refs at = ReadRefs(position);
    thread.outdated = !at.head.empty() && !refs_.head.empty() && at != refs_;
    // GitLab's own notes, such as "changed this line", do not count as answers.
    thread.comments = static_cast<int>(
        std::count_if(notes->array()->begin(), notes->array()->end(),
                      [](const codec::Json& note) { return !note.BooleanAt("system"); }));
    threads.push_back(std::move(thread));
  }
  return threads;
}

codec::Json GitLabDiscussions::Position(const std::string& type, const std::string& path) const {
  auto file = std::find_if(files_.begin(), files_.end(),
                           [&](const DiffFile& candidate) { return candidate.path == path; });
  codec::Json position;
  position.Set("position_type", type)
      .Set("base_sha", refs_.base)
      .Set("start_sha", refs_.start)
      .Set("head_sha", refs_.head)
      .Set("old_path", file == files_.end() ? path : file->old_path)
      .Set("new_path", path);
  return position;
}

Status GitLabDiscussions::Start(const codec::Json& position, const std::string& text,
                                Deadline deadline) {
  WriteRequest request{"POST", request_ / "discussions", {}, false, kGitLabPermission};
  request.body.Set("body", text).Set("position", position);
  Result<std::optional<codec::Json>> started = client_.Write(request, deadline);
  if (started.ok()) return Ok();
  Error error = std::move(started).error();
  // "line_code is invalid": GitLab's word for a line that it does not show.
  if (client_.status() == 400) error.code = Code::kInvalid;
  return error;
}

Status GitLabDiscussions::Post(const std::string&, const std::string&,
                               const std::vector<ReviewComment>& comments, Deadline deadline) {
  for (const ReviewComment& comment : comments) {
    codec::Json position = Position("text", comment.path);
    position.Set("new_line", comment.end_line);
    for (const DiffFile& file : files_) {
      const DiffLine* line = file.path == comment.path ? file.Find(comment.end_line) : nullptr;
      // A line that was there before is named by both numbers.
      if (line != nullptr && line->old_number > 0) position.Set("old_line", line->old_number);
    }
    TRY(Start(position, comment.text, deadline));
  }
  return Ok();
}

Status GitLabDiscussions::PostOnFile(const std::string&, const std::string& path,
                                     const std::string& text, Deadline deadline) {
  return Start(Position("file", path), text, deadline);
}

Status GitLabDiscussions::Resolve(const std::string& thread_id, Deadline deadline) {
  return Settle(thread_id, true, deadline);
}

Status GitLabDiscussions::Reopen(const std::string& thread_id, Deadline deadline) {
  return Settle(thread_id, false, deadline);
}

Status GitLabDiscussions::Settle(const std::string& thread_id, bool resolved, Deadline deadline) {
  WriteRequest request{"PUT", request_ / "discussions" / thread_id, {}, true, kGitLabPermission};
  request.body.Set("resolved", resolved);
  TRY(client_.Write(request, deadline));
  return Ok();
}

Status GitLabDiscussions::DeleteComment(int64_t id, Deadline deadline) {
  return notes_.Delete(id, deadline);
}

// The comment stands at the last line.
std::string GitLabDiscussions::SuggestionFence(int lines) const {
  return "suggestion:-" + std::to_string(lines - 1) + "+0";
}

}  // namespace forge
