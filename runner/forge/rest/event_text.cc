// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "codec/data/json.h"
#include "forge/rest/event.h"

namespace forge {
namespace {

const codec::Json& Member(const codec::Json& json, std::string_view name) {
  static const codec::Json kNull;
  const codec::Json* found = json.Find(name);
  return found == nullptr ? kNull : *found;
}

// Returns the activity by GitHub's name. Gitea and Forgejo have words of their own for some, which
// a workflow's `types` never has: `label_updated` starts what is for `labeled`.
std::string ActivityOf(std::string action) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"label_updated", "labeled"},
      {"label_cleared", "unlabeled"},
      {"synchronized", "synchronize"},
      {"reviewed", "submitted"},
  };
  for (const auto& [theirs, ours] : kOthers) {
    if (action == theirs) return std::string(ours);
  }
  return action;
}

std::string LoginOf(const codec::Json& json) { return Member(json, "user").StringAt("login"); }

// Appends the names of the labels in a list; of anything else nothing.
void AddNames(const codec::Json& labels, EventText* text) {
  if (labels.array() == nullptr) return;
  for (const codec::Json& label : *labels.array()) {
    if (text->labels.size() == kLabelsMax) return;
    text->labels.push_back(label.StringAt("name"));
  }
}

// GitHub and Forgejo name the label that was given or taken away, newer versions of Gitea which
// ones, older ones none.
void ReadLabels(const codec::Json& payload, const codec::Json& subject, EventText* text) {
  if (text->action == "labeled" || text->action == "unlabeled") {
    const codec::Json& label = Member(payload, "label");
    if (label.object() != nullptr) return text->labels.push_back(label.StringAt("name"));
    const codec::Json& changes = Member(payload, "changes");
    AddNames(Member(changes, "added_labels"), text);
    if (!text->labels.empty()) return;
    AddNames(Member(changes, "removed_labels"), text);
    if (!text->labels.empty()) text->action = "unlabeled";
    // Where Gitea says that labels were cleared, the pull request still has one of them.
    if (text->action == "unlabeled") return;
  }
  AddNames(Member(subject, "labels"), text);
}

// Returns whether a member is what the forge itself says: who, where, when, and which of what the
// repository has.
bool IsFact(std::string_view name) {
  constexpr std::string_view kFacts[] = {
      "repository", "repo",    "organization", "enterprise",  "installation",
      "sender",     "user",    "author",       "assignee",    "assignees",
      "pusher",     "base",    "commits",      "head_commit", "requested_reviewers",
      "action",     "ref",     "workflow",     "name",        "state",
      "_links",     "reviews", "slug",         "permissions", "author_association"};
  constexpr std::string_view kEndings[] = {"url", "_at", "_id", "sha"};
  return std::ranges::find(kFacts, name) != std::end(kFacts) ||
         std::ranges::any_of(kEndings, [&](auto end) { return name.ends_with(end); });
}

// Adds every text below `json` that `text` lacks; `path` is json's path. With `made_up`, a caller
// of the forge's API chose the names of the members, so none of them is taken for a fact.
void AddOthers(const codec::Json& json, const std::string& path, bool made_up, EventText* text) {
  if (json.string() != nullptr) {
    const std::string& value = *json.string();
    const bool has = value == text->title || value == text->body || value == text->comment;
    if (!has) text->others.emplace_back(path, value);
  } else if (json.array() != nullptr) {
    for (const codec::Json& one : *json.array()) AddOthers(one, path, made_up, text);
  } else if (json.object() != nullptr) {
    for (const auto& [name, member] : *json.object()) {
      if (!made_up && IsFact(name)) continue;
      const bool free = path.empty() && (name == "client_payload" || name == "inputs");
      AddOthers(member, path + (path.empty() ? "" : ".") + name, made_up || free, text);
    }
  }
}

}  // namespace

Result<EventText> ParseActionsText(std::string_view payload) {
  codec::JsonBounds bounds;
  bounds.bytes_max = kEventBytesMax;
  codec::Json json = TRY(codec::ParseJson(payload, bounds));
  if (json.object() == nullptr) return Error{Code::kInvalid, "not a JSON object"};
  EventText text;
  text.action = ActivityOf(json.StringAt("action"));
  const codec::Json& pull = Member(json, "pull_request");
  const codec::Json& subject = pull.object() != nullptr ? pull : Member(json, "issue");
  text.number = subject.IntegerAt("number");
  text.title = subject.StringAt("title");
  text.body = subject.StringAt("body");
  text.author = LoginOf(subject);
  ReadLabels(json, subject, &text);
  const codec::Json& review = Member(json, "review");
  const codec::Json& comment = review.object() != nullptr ? review : Member(json, "comment");
  text.comment = comment.StringAt("body");
  if (text.comment.empty()) text.comment = comment.StringAt("content");  // Gitea's of a review.
  text.comment_author = LoginOf(comment);
  AddOthers(json, "", false, &text);
  return text;
}

}  // namespace forge
