// SPDX-License-Identifier: Apache-2.0
#include "forge/event_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/sys.h"
#include "codec/data/json.h"

namespace forge {
namespace {

constexpr size_t kEventBytesMax = 25 * 1024 * 1024;  // The same as in forge/event.cc.
constexpr size_t kLabelsMax = 100;                   // GitHub's own bound for one issue.

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

void ReadLabels(const codec::Json& payload, const codec::Json& subject, EventText* text) {
  const codec::Json& changed = Member(payload, "label");
  if (text->action == "labeled" || text->action == "unlabeled") {
    if (changed.object() != nullptr) text->labels.push_back(changed.StringAt("name"));
    // Where Gitea says that labels were cleared, the pull request still has one of them.
    if (changed.object() != nullptr || text->action == "unlabeled") return;
  }
  const codec::Json& labels = Member(subject, "labels");
  if (labels.array() == nullptr) return;
  for (const codec::Json& label : *labels.array()) {
    if (text->labels.size() == kLabelsMax) return;
    text->labels.push_back(label.StringAt("name"));
  }
}

// https://docs.gitlab.com/ci/variables/predefined_variables/: a description of more than 2700
// characters is cut there, and no activity is said.
EventText ReadMergeRequest(const EnvironmentReader& environment) {
  auto get = [&](const char* name) { return environment(name).value_or(""); };
  EventText text;
  std::string number = get("CI_MERGE_REQUEST_IID");
  std::from_chars(number.data(), number.data() + number.size(), text.number);
  text.title = get("CI_MERGE_REQUEST_TITLE");
  text.body = get("CI_MERGE_REQUEST_DESCRIPTION");
  std::string labels = get("CI_MERGE_REQUEST_LABELS");
  for (size_t from = 0; from < labels.size() && text.labels.size() < kLabelsMax;) {
    size_t end = std::min(labels.find(',', from), labels.size());
    if (end > from) text.labels.push_back(labels.substr(from, end - from));
    from = end + 1;
  }
  return text;
}

}  // namespace

Result<EventText> ParseEventText(std::string_view payload) {
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
  return text;
}

Result<EventText> ReadEventText(const EnvironmentReader& environment, const Event& event) {
  if (event.forge == ForgeKind::kNone) return EventText();
  if (environment("GITLAB_CI") == "true") return ReadMergeRequest(environment);
  std::optional<std::string> path = environment("GITHUB_EVENT_PATH");
  if (!path) return EventText();
  std::string payload = TRY(sys::ReadFile(*path, kEventBytesMax).Context("reading the event"));
  return ParseEventText(payload).Context("reading the event " + *path);
}

}  // namespace forge
